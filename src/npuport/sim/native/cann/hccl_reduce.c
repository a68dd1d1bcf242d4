/* Reducing element by element. Ranks are always combined in the order of their numbers, so every rank gets the same bits. */
#include "hccl.h"

#pragma GCC optimize("O3") /* vectorises the loops */

size_t npuport_element_bytes(int type) {
    static const size_t bytes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};
    return type >= 0 && type < (int)(sizeof bytes / sizeof *bytes) ? bytes[type] : 0;
}

static float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff, word;
    if (exponent == 31) {
        word = sign | 0x7f800000 | mantissa << 13;
    } else if (exponent) {
        word = sign | (exponent + 112) << 23 | mantissa << 13;
    } else {
        float value = (float)mantissa * 0x1p-24f; /* subnormal */
        return sign ? -value : value;
    }
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Round to nearest, ties to even. */
static uint16_t float_to_half(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    uint16_t sign = (uint16_t)(word >> 16 & 0x8000);
    uint32_t magnitude = word & 0x7fffffff;
    if (magnitude > 0x7f800000) return sign | 0x7e00;
    if (magnitude >= 0x477ff000) return sign | 0x7c00; /* rounds to more than 65504 */
    if (magnitude < 0x38800000) {                      /* subnormal: adding 0.5 lets the float unit round at 2^-24 */
        float shifted;
        memcpy(&shifted, &magnitude, sizeof shifted);
        shifted += 0.5f;
        memcpy(&magnitude, &shifted, sizeof magnitude);
        return (uint16_t)(sign | (magnitude - 0x3f000000));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((magnitude - 0x38000000) >> 13));
}

static float brain_to_float(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint16_t float_to_brain(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    if ((word & 0x7fffffff) > 0x7f800000) return (uint16_t)(word >> 16 | 0x40);
    return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

#define COMBINE(a, b) (operation == SUM ? (a) + (b) : operation == PROD ? (a) * (b) : operation == MAX ? ((a) > (b) ? (a) : (b)) : ((a) < (b) ? (a) : (b)))
#define EACH(T)                                                              \
    {                                                                        \
        T* to = into;                                                        \
        const T* other = from;                                               \
        for (size_t i = 0; i < count; i++) to[i] = (T)COMBINE(to[i], other[i]); \
        return HCCL_SUCCESS;                                                 \
    }
#define EACH_16(in, out)                                 \
    {                                                    \
        uint16_t* to = into;                             \
        const uint16_t* other = from;                    \
        for (size_t i = 0; i < count; i++) {             \
            float a = in(to[i]), b = in(other[i]);       \
            to[i] = out(COMBINE(a, b));                  \
        }                                                \
        return HCCL_SUCCESS;                             \
    }

HcclResult npuport_combine(void* into, const void* from, size_t count, int type, int operation) {
    if (operation < SUM || operation > MIN) return npuport_fail(HCCL_E_NOT_SUPPORT, "HCCL reduction %d", operation);
    switch (type) {
        case INT8: EACH(int8_t)
        case INT16: EACH(int16_t)
        case INT32: EACH(int32_t)
        case FP16: EACH_16(half_to_float, float_to_half)
        case FP32: EACH(float)
        case INT64: EACH(int64_t)
        case UINT64: EACH(uint64_t)
        case UINT8: EACH(uint8_t)
        case UINT16: EACH(uint16_t)
        case UINT32: EACH(uint32_t)
        case FP64: EACH(double)
        case BFP16: EACH_16(brain_to_float, float_to_brain)
        default: return npuport_fail(HCCL_E_NOT_SUPPORT, "HCCL reduces no data type %d", type);
    }
}

/* What the chip reduces, as the launcher has it from CANN's documents: a mask of data types for each operation. */
HcclResult npuport_check_chip(const char* name, int type, int operation) {
    static const char* const types[] = {"int8", "int16", "int32", "float16", "float32", "int64", "uint64", "uint8", "uint16", "uint32", "float64", "bfloat16"};
    static const char* const operations[] = {"sum", "prod", "max", "min"};
    static _Atomic uint32_t told[4];
    unsigned masks[4];
    const char *known = getenv("NPUPORT_SIM_REDUCTIONS"), *strict = getenv("NPUPORT_SIM_STRICT");
    if (!known || sscanf(known, "%u %u %u %u", &masks[0], &masks[1], &masks[2], &masks[3]) != 4) return HCCL_SUCCESS;
    if (masks[operation] >> type & 1) return HCCL_SUCCESS;
    if (strict && !strcmp(strict, "1"))
        return npuport_fail(HCCL_E_NOT_SUPPORT, "EI0003: %s on %s does not take %s with %s", name, aclrtGetSocName(), types[type], operations[operation]);
    if (!(atomic_fetch_or(&told[operation], 1u << type) >> type & 1))
        fprintf(stderr, "npuport: %s on %s does not take %s with %s; here it is computed all the same\n", name, aclrtGetSocName(), types[type], operations[operation]);
    return HCCL_SUCCESS;
}

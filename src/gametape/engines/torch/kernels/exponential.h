// e to the power x, to the last bits of a float; written out so that the compiler can take many at once.

#include <stdint.h>
#include <string.h>

static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float whole = __builtin_rintf(x * 1.44269504f);
    float rest = __builtin_fmaf(whole, 2.12194440e-4f, __builtin_fmaf(whole, -0.693359375f, x));
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    int32_t bits = ((int32_t)whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

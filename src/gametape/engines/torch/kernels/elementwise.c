// What a decoder does between its matrix products, in float32 and in one pass each. Rows are shared out among threads
// where there is enough to do; what becomes of a row does not depend on the others.

#include <math.h>
#include <stdint.h>

#include "exponential.h"

#define WORTH_SHARING 32768

// hidden += more, unless there is no more; out = hidden / rms(hidden) * gain
void add_and_norm(float *hidden, const float *more, const float *gain, float eps, int64_t rows, int64_t width, float *out) {
#pragma omp parallel for if (rows * width > WORTH_SHARING)
    for (int64_t n = 0; n < rows; n++) {
        float *x = hidden + n * width, *y = out + n * width, squares = 0;
        if (more)
            for (int64_t e = 0; e < width; e++) x[e] += more[n * width + e];
        for (int64_t e = 0; e < width; e++) squares += x[e] * x[e];
        float scale = 1.0f / sqrtf(squares / width + eps);
        for (int64_t e = 0; e < width; e++) y[e] = x[e] * scale * gain[e];
    }
}

// out = silu(gate) * up, where a row is a gate and then an up
void gate(const float *gate_up, int64_t rows, int64_t width, float *out) {
#pragma omp parallel for if (rows * width > WORTH_SHARING)
    for (int64_t n = 0; n < rows; n++) {
        const float *x = gate_up + 2 * n * width;
        for (int64_t i = 0; i < width; i++) out[n * width + i] = x[i] / (1.0f + exponential(-x[i])) * x[width + i];
    }
}

// Turn the first heads of each row by the row's position, in place; `apart` floats lie between a row and the next.
void turn(float *x, int64_t apart, const float *cosines, const float *sines, int64_t rows, int64_t heads, int64_t width) {
    int64_t half = width / 2;
#pragma omp parallel for if (rows * heads * width > WORTH_SHARING)
    for (int64_t n = 0; n < rows; n++) {
        const float *cosine = cosines + n * width, *sine = sines + n * width;
        for (int64_t h = 0; h < heads; h++) {
            float *low = x + n * apart + h * width, *high = low + half;
            for (int64_t d = 0; d < half; d++) {
                float a = low[d], b = high[d];
                low[d] = a * cosine[d] + b * sine[d];
                high[d] = b * cosine[half + d] + a * sine[half + d];
            }
        }
    }
}

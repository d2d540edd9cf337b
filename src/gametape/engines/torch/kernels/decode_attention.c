// Decode attention on a CPU, in float32: a new token for each sequence, keys and values read where they lie.
//
// A sequence is cut into stretches of SPLIT tokens that are attended to side by side and joined by their log-sum-exp.
// Where the cuts lie depends on the sequence's own length alone, so its result does not depend on its company.
//
// WIDTH (of a head), SHARE (query heads that read one key head), BLOCK (tokens) and SPLIT are given to the compiler.

#include <stdint.h>
#include <string.h>

#include "exponential.h"

#define HEADS_OF_GROUP (SHARE * WIDTH)
#define PARTIAL (SHARE * (WIDTH + 2))  // sums, then peaks, then weights

// What the query heads of one key head make of `count` tokens. `row` floats lie between a token and the next.
static void attend(const float *q, float scale, const float *keys, const float *values, const int64_t *blocks,
                   int64_t count, int64_t row, float *partial) {
    float scaled[HEADS_OF_GROUP], scores[SHARE][SPLIT], sums[SHARE][WIDTH] = {{0}};
    for (int d = 0; d < HEADS_OF_GROUP; d++) scaled[d] = q[d] * scale;
    for (int64_t at = 0; at < count; at++) {
        const float *k = keys + (blocks[at / BLOCK] * BLOCK + at % BLOCK) * row;
        for (int r = 0; r < SHARE; r++) {
            float dot = 0;
            for (int d = 0; d < WIDTH; d++) dot += scaled[r * WIDTH + d] * k[d];
            scores[r][at] = dot;
        }
    }
    for (int r = 0; r < SHARE; r++) {
        float peak = scores[r][0], weight = 0;
        for (int64_t at = 1; at < count; at++) peak = scores[r][at] > peak ? scores[r][at] : peak;
        for (int64_t at = 0; at < count; at++) {
            scores[r][at] = exponential(scores[r][at] - peak);
            weight += scores[r][at];
        }
        partial[HEADS_OF_GROUP + r] = peak;
        partial[HEADS_OF_GROUP + SHARE + r] = weight;
    }
    for (int64_t at = 0; at < count; at++) {
        const float *v = values + (blocks[at / BLOCK] * BLOCK + at % BLOCK) * row;
        for (int r = 0; r < SHARE; r++)
            for (int d = 0; d < WIDTH; d++) sums[r][d] += scores[r][at] * v[d];
    }
    memcpy(partial, sums, sizeof sums);
}

// One query head's stretches, `apart` floats from each other.
static void join(const float *partial, int r, int64_t stretches, int64_t apart, float *out) {
    const float *peaks = partial + HEADS_OF_GROUP + r;
    float peak = peaks[0], weight = 0, sums[WIDTH] = {0};
    for (int64_t at = 1; at < stretches; at++) peak = peaks[at * apart] > peak ? peaks[at * apart] : peak;
    for (int64_t at = 0; at < stretches; at++) {
        float factor = exponential(peaks[at * apart] - peak);
        weight += factor * peaks[at * apart + SHARE];
        for (int d = 0; d < WIDTH; d++) sums[d] += factor * partial[at * apart + r * WIDTH + d];
    }
    for (int d = 0; d < WIDTH; d++) out[d] = sums[d] / weight;
}

// New keys and values, `k_row` and `v_row` floats apart, into these rows of [blocks * BLOCK, groups, WIDTH].
void store(const float *k, int64_t k_row, const float *v, int64_t v_row, int64_t tokens, int64_t groups,
           const int64_t *rows, float *keys, float *values) {
    int64_t width = groups * WIDTH;
    for (int64_t n = 0; n < tokens; n++) {
        memcpy(keys + rows[n] * width, k + n * k_row, width * sizeof(float));
        memcpy(values + rows[n] * width, v + n * v_row, width * sizeof(float));
    }
}

// q and out are rows of heads, `q_row` and `out_row` floats apart; keys and values are [blocks, BLOCK, groups, WIDTH].
// Sequence s has its query in row places[s], lengths[s] tokens in the blocks from tables[firsts[s]] on, and its
// stretches from number cuts[s] up to cuts[s + 1]. partial has room for every stretch's groups.
void decode_attention(const float *q, int64_t q_row, const float *keys, const float *values, int64_t groups,
                      int64_t sequences, const int64_t *places, const int64_t *lengths, const int64_t *firsts,
                      const int64_t *cuts, const int64_t *tables, float scale, float *partial, float *out,
                      int64_t out_row) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t at = 0; at < cuts[sequences]; at++) {
        int64_t s = 0;
        while (cuts[s + 1] <= at) s++;
        int64_t begin = (at - cuts[s]) * SPLIT, left = lengths[s] - begin, count = left < SPLIT ? left : SPLIT;
        for (int64_t g = 0; g < groups; g++)
            attend(q + places[s] * q_row + g * HEADS_OF_GROUP, scale, keys + g * WIDTH, values + g * WIDTH,
                   tables + firsts[s] + begin / BLOCK, count, groups * WIDTH, partial + (at * groups + g) * PARTIAL);
    }
    for (int64_t s = 0; s < sequences; s++)
        for (int64_t g = 0; g < groups; g++)
            for (int r = 0; r < SHARE; r++)
                join(partial + (cuts[s] * groups + g) * PARTIAL, r, cuts[s + 1] - cuts[s], groups * PARTIAL,
                     out + places[s] * out_row + (g * SHARE + r) * WIDTH);
}

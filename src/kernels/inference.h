// The requests of what a Transformer computes without gradients, in float32, and the functions that
// take them. C headers only: the sources in isa/ are compiled once per instruction set.
//
//   linear_few.cpp          x W^T + b for a few rows: W streams by once, at the speed of memory
//   linear_many.cpp         the same for many rows, at the speed of the multipliers
//   attention_step.cpp      one query a row, over keys and values that lie anywhere
//   attention_sequence.cpp  all queries of sequences that lie one after the other
//   add_norm.cpp            residual and layer norm in one pass
//   activation.cpp          ReLU, GELU, Swish
//   topk.cpp                the logarithm of a row's sum of exponentials, and its best entries
//
// Each result depends on its own row's inputs only, and on whether few or many rows were asked for:
// not on how the work is split between threads.
#pragma once
#include <stdint.h>

namespace posenc::kernels::inference {

// out = x weight^T + bias, of torch's row-major weight where it lies: no packed copy is made.
struct Linear {
  const float* x;  // (rows, inner)
  int64_t x_stride;
  int64_t rows;
  const float* weight;  // (outer, inner)
  const float* bias;    // (outer), or null
  int64_t inner, outer;
  float* out;  // (rows, outer)
  int64_t out_stride;
};
constexpr int64_t kFewRows = 8;     // linear_few takes at most this many
constexpr int64_t kPanelRows = 48;  // linear_many's rows come this many at a time
// linear_many goes through the weight once for this many rows: what a second cache holds of them.
constexpr int64_t packed_rows(int64_t inner) {
  const int64_t panels = (int64_t{160} << 10) / (kPanelRows * inner);
  return kPanelRows * (panels > 1 ? panels : 1);
}

// softmax(scale * q k^T + bias) v for one query in each row and head. Tokens may be anywhere: a
// token's key in head h is at token[key + h * width], its value at token[value + h * width].
struct Attention {
  const float* query;  // (rows, heads * width)
  int64_t query_stride;
  int64_t heads, width;
  const float* const* const* tokens;  // for each row, the tokens that it sees
  const int64_t* counts;              // and how many. A row that sees none gets zeros
  int64_t key, value;
  float scale;
  const float* bias;  // added to the scores, or null: (., ., counts); -inf: not seen
  int64_t bias_row_stride, bias_head_stride;
  float* out;  // (rows, heads * width)
  int64_t out_stride;
};

// softmax(scale * q k^T + bias) v of whole sequences, whose rows are neighbours. Rows of queries,
// keys and values hold their heads side by side; keys and values may be parts of the same rows.
struct SequenceAttention {
  const float* query;  // (rows, heads * width)
  int64_t query_stride;
  const float *keys, *values;  // (key rows, heads * width)
  int64_t key_stride;          // of both
  int64_t heads, width, sequences;
  const int64_t *query_first, *query_lengths;  // of each sequence: its first row, and how many
  const int64_t *key_first, *key_lengths;
  float scale;
  bool is_causal;     // query i sees the keys 0 .. i of its sequence
  const float* bias;  // added to the scores, or null; -inf: not seen. A query that sees none gets 0
  int64_t bias_strides[4];  // sequence, head, query, key
  float* out;               // (rows, heads * width)
  int64_t out_stride;
};

// sum = x + y; out = (sum - mean) / sqrt(variance + eps) * weight + bias, row by row, contiguous.
struct AddNorm {
  const float* x;  // (rows, width)
  const float* y;  // null: nothing is added
  int64_t width;
  float* sum;           // null: it is not needed. May be x
  float* out;           // null: no norm. May be x or y
  const float* weight;  // (width)
  const float* bias;    // (width), or null
  float eps;
};

enum class Activation { ReLU, GELU, Swish };
constexpr int kActivations = 3;

// log of the sum of exp(x): largest + rest. Apart, because x - largest - rest keeps what is small.
struct LogSum {
  float largest, rest;
};

// A score and where it stands.
struct Ranked {
  float score;
  int64_t place;
};

struct LinearKernels {
  // Of the columns of out. `scratch`: scratch_floats(inner).
  void (*run)(const Linear& request, int64_t begin, int64_t end, float* scratch);
};
constexpr int64_t scratch_floats(int64_t inner) { return packed_rows(inner) * inner; }
struct AttentionKernels {
  // Of the rows times heads. `scratch`: the largest count, rounded up to sixteens, in floats.
  void (*attend)(const Attention& request, int64_t begin, int64_t end, float* scratch);
};
struct SequenceAttentionKernels {
  // Of the heads times sequences. `scratch`: sequence_floats(width, the largest number of keys).
  void (*attend)(const SequenceAttention& request, int64_t begin, int64_t end, float* scratch);
};
constexpr int64_t sequence_floats(int64_t width, int64_t keys) {
  return kPanelRows * (width + keys);
}
struct AddNormKernels {
  void (*add_norm)(const AddNorm& request, int64_t begin, int64_t end);  // of the rows
};
struct ActivationKernels {
  void (*activate[kActivations])(float* x, int64_t n);  // in place
};
struct TopkKernels {
  LogSum (*log_sum_exp)(const float* x, int64_t n);
  // Lets (x[i] - shift) + base, at place + i, into the `count` best, which are sorted; the first
  // among equals.
  void (*topk_insert)(const float* x, int64_t n, float shift, float base, int64_t place,
                      Ranked* best, int64_t count);
};

}  // namespace posenc::kernels::inference

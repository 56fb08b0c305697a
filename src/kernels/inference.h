// Requests of the float32 kernels that run a Transformer without gradients, and the functions that
// take them. C headers only: the sources in isa/ are compiled once per instruction set.
//
//   linear_few.cpp          x W^T + b for a few rows: W is streamed once, at memory bandwidth
//   linear_many.cpp         the same for many rows, at the arithmetic throughput; both for a W in
//                           float32 or bfloat16
//   attention_step.cpp      one query per row, over keys and values anywhere in memory, which
//                           rows may share
//   attention_sequence.cpp  all queries of contiguous sequences
//   add_norm.cpp            residual and norm in one pass
//   activation.cpp          ReLU, GELU and its approximations, SiLU; alone and as gates
//   topk.cpp                log-sum-exp of a row, and its top entries
//   maxsim.cpp              largest products with the rows of documents, summed
//
// Each result depends only on its own row's inputs and on which of the two linear kernels computes
// it, not on how the work is split between threads. Values that are not finite are the exception:
// in attention that is causal or has a window, where weights of 0 multiply tokens that a query does
// not see, they may reach other queries of the same block, whose size is the instruction set's. In
// LibTorch's own they reach all queries.
#pragma once
#include <stdint.h>

namespace posenc::kernels::inference {

// bfloat16 in memory: the high half of a float32, to which it is widened before it is multiplied.
using BFloat16 = uint16_t;

// out = x weight^T + bias, with torch's row-major weight read in place: no packed copy is made.
// A weight in bfloat16 gives the bits of the same numbers in float32.
template <typename Element>
struct LinearRequestOf {
  const float* x;  // (rows, inner)
  int64_t x_stride;
  int64_t rows;
  const Element* weight;  // (outer, inner): float or BFloat16
  const float* bias;      // (outer), or null
  int64_t inner, outer;
  float* out;  // (rows, outer)
  int64_t out_stride;
};
using LinearRequest = LinearRequestOf<float>;
constexpr int64_t kFewRows = 8;     // the most rows for which linear_few is faster
constexpr int64_t kPanelRows = 48;  // linear_many packs multiples of this many rows
// linear_many streams the weight once for this many rows, whose packed copy fits in the L2 cache.
constexpr int64_t packed_rows(int64_t inner) {
  const int64_t panels = (int64_t{160} << 10) / (kPanelRows * inner);
  return kPanelRows * (panels > 1 ? panels : 1);
}

// softmax(scores + bias) v for one query in each row and head, where the scores are scale * q k^T,
// or with a softcap softcap * tanh(scale * q k^T / softcap). Tokens may be anywhere in
// memory: token[key + h / group * head_stride] is where a token's key in head h begins, and
// token[value + h / group * head_stride] its value. Rows may form sets that attend to the same
// tokens, which are then read once for kSetRows of them.
struct AttentionRequest {
  const float* query;  // (rows, heads * width)
  int64_t query_stride;
  int64_t heads, width;
  const float* const* const* tokens;  // for each set, the tokens that its rows attend to
  const int64_t* counts;              // and their number; rows without tokens get zeros
  int64_t key, value;
  float scale;
  const float* bias;  // added to the scores, or null: (., ., counts); -inf masks a token
  int64_t bias_row_stride, bias_head_stride;
  // Added to the scores as well, or null: for head h and token j the entry h * relative_stride +
  // counts - 1 - j, that of its distance from the last token.
  const float* relative = nullptr;
  int64_t relative_stride = 0;
  float* out;  // (rows, heads * width)
  int64_t out_stride;
  int64_t group = 1;              // the number of query heads that share a head of keys and values
  float softcap = 0.0f;           // 0: none
  int64_t head_stride = 0;        // 0: width
  const int64_t* sets = nullptr;  // set s has the rows sets[s] .. sets[s + 1] - 1; null: a row each
};
constexpr int64_t kSetRows = 16;

// What attention of whole sequences computes its products in.
enum class AttentionProducts {
  Float32,
  BFloat16,    // both: bfloat16.h
  Int8Scores,  // queries with keys in 8 bits (int8.h), weights with values in float32
};

constexpr int64_t kNoWindow = -1;

// softmax(scores + bias) v of whole sequences, each a block of contiguous rows. Rows of
// queries, keys and values hold their heads side by side; keys and values may share rows.
struct SequenceAttentionRequest {
  const float* query;  // (rows, heads * width)
  int64_t query_stride;
  const float *keys, *values;  // (key rows, heads / group * width)
  int64_t key_stride;          // of both
  int64_t heads, width, sequences;
  int64_t group = 1;  // the number of query heads that share a head of keys and values
  const int64_t *query_first, *query_lengths;  // for each sequence: its first row, and its length
  const int64_t *key_first, *key_lengths;
  // For each sequence, how many of its keys are no padding, on which the arithmetic of its scores
  // depends (int8.h); null: all.
  const int64_t* key_tokens = nullptr;
  // For each sequence, which of its keys is that of its query 0; those of the other queries follow.
  // Null: key 0. With positions, queries and keys are the same rows.
  const int64_t* query_places = nullptr;
  float scale;
  float softcap = 0.0f;  // of the scores, as in AttentionRequest; 0: none
  bool is_causal;        // a query attends to the keys of its sequence up to its own
  // Query i attends to the keys j with |position(i) - position(j)| <= window: that of row r is
  // positions[r], ascending in each sequence, or that of its key if positions is null. kNoWindow:
  // it attends to all.
  int64_t window = kNoWindow;
  // Whether the layer has a window, also where no sequence is longer: that decides how sums over
  // keys are made, which may not depend on the longest sequence.
  bool has_window = false;
  const int64_t* positions;
  // Added to the scores as well, or null: for head h, query i and key j the entry
  // h * relative_stride + position(i) - position(j), with kPanelRows readable entries after the
  // last. That of row r is relative_positions[r], or that of its key if it is null.
  const float* relative = nullptr;
  int64_t relative_stride = 0;
  const int64_t* relative_positions = nullptr;
  const float* bias;        // added to the scores, or null; -inf masks. A fully masked query gets 0
  int64_t bias_strides[4];  // sequence, head, query, key
  // Added to the scores as well, or null: for each sequence null, or what all of its heads have,
  // (keys, queries) with mask_stride between keys.
  const float* const* masks = nullptr;
  int64_t mask_stride = 0;
  float* out;  // (rows, heads * width)
  int64_t out_stride;
};

enum class NormKind {
  Layer,         // (x - mean) / sqrt(variance + eps) * weight + bias
  RMS,           // x / sqrt(mean of squares + eps) * weight
  RMSPlusOne,    // x / sqrt(mean of squares + eps) * (1 + weight)
  LayerPlusOne,  // (x - mean) / sqrt(variance + eps) * (1 + weight) + bias
  Affine,        // x * weight + bias
};

// sum = x + y; out = norm(sum), for contiguous rows.
struct AddNormRequest {
  const float* x;  // (rows, width)
  const float* y;  // null: nothing is added
  int64_t width;
  float* sum;           // null: not needed. May be x
  float* out;           // null: no norm. May be x or y
  const float* weight;  // (width)
  const float* bias;    // (width), or null; not of RMS norms
  float eps;
  NormKind kind = NormKind::Layer;
};

// out = the sum, over the rows of a query, of the largest product with a row of each document.
struct MaxSimRequest {
  const float* query;  // (query_rows, width), as MaxSimKernels::pack() writes it
  int64_t query_rows, width;
  const float* documents;  // (., width), the rows of one after those of the one before
  const int64_t* first;    // the first row of each document, and the end of the last
  float* out;              // of each document
};
constexpr float kEmptyDocument = -1e9F;  // out of a document without rows
// Of a packed query.
constexpr int64_t maxsim_floats(int64_t query_rows, int64_t width) {
  return (query_rows + kPanelRows - 1) / kPanelRows * kPanelRows * width;
}

// log(sum(exp(x))) = largest + rest, kept separate so that x - largest - rest loses no precision.
struct LogSum {
  float largest, rest;
};

// A score and its index.
struct TopkEntry {
  float score;
  int64_t index;
};

template <typename Element>
struct LinearKernelsOf {
  // Columns [begin, end) of out. `scratch`: scratch_floats(inner).
  void (*run)(const LinearRequestOf<Element>& request, int64_t begin, int64_t end, float* scratch);
};
using LinearKernels = LinearKernelsOf<float>;
constexpr int64_t scratch_floats(int64_t inner) { return packed_rows(inner) * inner; }
struct AttentionKernels {
  // Sets times heads. `scratch`: the largest count, rounded up to a multiple of 16, in floats, for
  // each of at most kSetRows rows of a set.
  void (*attend)(const AttentionRequest& request, int64_t begin, int64_t end, float* scratch);
};
struct SequenceAttentionKernels {
  // Heads times sequences. `scratch`: sequence_floats(width, the largest number of keys), or what
  // int8.h and bfloat16.h ask for.
  void (*attend)(const SequenceAttentionRequest& request, int64_t begin, int64_t end,
                 float* scratch);
};
// A panel of queries and of their scores, and one head's keys and values.
constexpr int64_t sequence_floats(int64_t width, int64_t keys) {
  return kPanelRows * (width + keys) + 2 * keys * width;
}
struct AddNormKernels {
  void (*add_norm)(const AddNormRequest& request, int64_t begin, int64_t end);  // rows [begin, end)
};
struct ActivationKernel {
  void (*activate)(float* x, int64_t n);              // in place
  void (*gate)(float* x, const float* y, int64_t n);  // x = activation(x) * y
};
struct ActivationKernels {
  ActivationKernel relu, gelu, silu, gelu_tanh, quick_gelu, relu_squared;
};
struct MaxSimKernels {
  void (*pack)(const float* query, int64_t rows, int64_t width, float* packed);  // maxsim_floats()
  void (*score)(const MaxSimRequest& request, int64_t begin,
                int64_t end);  // documents [begin, end)
};
struct TopkKernels {
  LogSum (*log_sum_exp)(const float* x, int64_t n);
  // Inserts (x[i] - shift) + base, with the index first_index + i, into the `count` best so far,
  // which are sorted; the first of equal scores wins.
  void (*topk_insert)(const float* x, int64_t n, float shift, float base, int64_t first_index,
                      TopkEntry* best, int64_t count);
};

}  // namespace posenc::kernels::inference

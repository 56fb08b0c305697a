// Requests of the embedding kernels, and the functions that take them. C headers only: the sources
// in isa/ are compiled once per instruction set.
//
//   gather.cpp              out[t] = dropout(weight[ids[t]] * scale + row_0(t)), in every type
//   encoder_embeddings.cpp  out[t] = dropout(norm(weight[ids[t]] * scale + row_0(t) + row_1(t) +
//   ...)) sum_rows.cpp            the gradient of the weight's rows dropout.cpp             out[i]
//   = x[i] * (kept[i] ? factor : 0): dropout on its own random.cpp              the random bits of
//   at::dropout
#pragma once
#include <stdint.h>

namespace posenc::kernels::embed {

// How elements are stored, and where arithmetic rounds. The half types compute in float32. Plain
// ones round after each operation, as ATen does; the Exact ones, whose table is float32, round
// once, at the end.
enum class Type { Float32, Float64, BFloat16, Float16, BFloat16Exact, Float16Exact };
constexpr int kTypes = 6;

constexpr int64_t element_size(Type type) {
  return type == Type::Float64 ? 8 : type == Type::Float32 ? 4 : 2;
}
// Element size of the position table, which is float32 for the Exact types.
constexpr int64_t table_element_size(Type type) {
  return type == Type::BFloat16Exact || type == Type::Float16Exact ? 4 : element_size(type);
}

// An array of int32 or int64, or none.
struct Integers {
  const void* data;  // null: none
  bool wide;         // int64
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// The dropout mask: one bit per element, set where the element is kept. The bits must be readable
// for 8 bytes past the last one.
struct DropoutMask {
  const uint8_t* bits = nullptr;  // null: no dropout
  double factor = 1.0;            // multiplies each kept element: 1 / (1 - p)
};

// A table of which a row is added to each token. Token t's row is ids ? ids[slot(t)] :
// offset + slot(t), where slot(t) = t / divide % count.
//   (B, L): divide 1, count L     (L, B): divide B, count L     per token: divide 1, count T
//   row `offset` for all: divide 1, count 1
struct AddedRows {
  const void* table;
  int64_t stride;  // elements from one row to the next
  int64_t offset;
  Integers ids;
  int64_t divide;
  int64_t count;
};

constexpr int kEmbeddingsTables = 8;  // at most, in addition to the tokens' own
// The widest row that can be normalised: the order of the norm's sums is planned on the stack.
constexpr int64_t kEmbeddingsWidest = 16384;

// A layer norm of each row, and the outputs that its backward needs.
struct EmbeddingsNorm {
  const float* weight = nullptr;  // null: no norm
  const float* bias = nullptr;    // null: zeros
  float eps = 0.0f;
  float* sum = nullptr;   // (tokens, dim): the rows before the norm; null: not kept
  float* mean = nullptr;  // (tokens); null if `sum` is
  float* rstd = nullptr;  // (tokens); null if `sum` is
};

// The forward of an embedding. Rows are added in the order of `added`. gather.cpp reads one table
// at most and has no norm; encoder_embeddings.cpp reads float32.
//
// Fields without an initialiser are set for every request, and for every table that is added:
// clearing the whole struct first would take longer than computing the row of a single token.
struct EmbedRequest {
  Integers ids;
  int64_t tokens;
  const void* weight;
  int64_t weight_stride;
  int64_t dim;
  double scale = 1.0;  // 1: an exact multiplication, the same bits as without it
  int tables = 0;      // how many are added
  AddedRows added[kEmbeddingsTables];
  EmbeddingsNorm norm;
  DropoutMask kept;
  void* out;            // (tokens, dim), contiguous
  bool stream = false;  // non-temporal stores, which pay off for outputs larger than the caches
};

// The gradient rows of some ids: row(g) = sum of the rows grad[token[i]], times dropout's factor,
// times scale, over i in [first[g], first[g + 1]), added in this order, starting from zero. Every
// group has at least one token.
struct SumRowsRequest {
  const void* grad = nullptr;  // (tokens, dim), contiguous
  int64_t dim = 0;
  double scale = 1.0;
  DropoutMask kept;
  const int32_t* token = nullptr;
  const int32_t* first = nullptr;
  const int64_t* row = nullptr;  // index in `out` of row g; null: g itself
  void* out = nullptr;
  int64_t out_stride = 0;
  void* scratch = nullptr;  // one row: sums are made here, then added to `out`; null: `out` is set
};

// The multiplication of at::dropout, for values or for their gradient.
struct DropoutRequest {
  const void* x;
  DropoutMask kept;
  void* out;
};

using EmbedKernel = void (*)(const EmbedRequest& request, int64_t begin,
                             int64_t end);  // tokens [begin, end)

struct GatherKernels {
  EmbedKernel gather[kTypes];
  // The index of the first of n integers that is not in [0, bound), or -1.
  int64_t (*find_out_of_range)(const Integers& ids, int64_t n, int64_t bound);
};

// How the norm rounds: at::layer_norm has fused multiply-adds where ATen runs its code for AVX2 or
// AVX-512, and rounds each product in ATen's default code.
enum class NormRounding { Fused, Separate };
constexpr int kNormRoundings = 2;

struct EmbeddingsKernels {
  EmbedKernel embeddings[kNormRoundings];  // null for Fused where the set has no such instruction
};

struct SumRowsKernels {
  // Rows [begin, end) of the result.
  void (*sum_rows[kTypes])(const SumRowsRequest& request, int64_t begin, int64_t end);
};

struct DropoutKernels {
  // Elements [begin, end); only for the types that round after each operation.
  void (*drop[4])(const DropoutRequest& request, int64_t begin, int64_t end);
};

struct RandomKernels {
  // Replaces mt19937's 624 words of state by the next 624, in place.
  void (*twist)(uint32_t* state);
  // One bit for each of n <= 64 pairs of words: set if the 53-bit number made of the tempered pair
  // is below `limit`.
  uint64_t (*keep_mt19937)(const uint32_t* words, int n, uint64_t limit);
  // One bit for each of the next 64 numbers of MCG31m1: set if the number is below `limit`. x holds
  // the next kMcgLanes numbers, and is advanced by 64.
  uint64_t (*keep_mcg31)(uint64_t* x, uint64_t limit);
};
constexpr int kMcgLanes = 8;

}  // namespace posenc::kernels::embed

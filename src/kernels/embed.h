// The requests of an embedding's kernels, and the functions that take them. C headers only: the
// sources in isa/ are compiled once per instruction set.
//
//   gather.cpp     out[t] = dropout(weight[ids[t]] * scale + table[position(t)])
//   sum_rows.cpp   the gradient of the weight's rows
//   dropout.cpp    out[i] = x[i] * (kept[i] ? factor : 0): dropout by itself
//   random.cpp     the random bits of at::dropout
#pragma once
#include <stdint.h>

namespace posenc::kernels::embed {

// How elements are stored, and where arithmetic rounds. The half types compute in float32. ATen
// rounds them after each operation; the Exact ones, whose table is float32, round once, at the end.
enum class Type { Float32, Float64, BFloat16, Float16, BFloat16Exact, Float16Exact };
constexpr int kTypes = 6;

constexpr int64_t element_size(Type type) {
  return type == Type::Float64 ? 8 : type == Type::Float32 ? 4 : 2;
}
// Of the position table, which the Exact types have in float32.
constexpr int64_t table_element_size(Type type) {
  return type == Type::BFloat16Exact || type == Type::Float16Exact ? 4 : element_size(type);
}

// int32 or int64 numbers, or none.
struct Integers {
  const void* data = nullptr;
  bool wide;  // int64
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// One bit an element, 1 where dropout keeps it; readable for 8 bytes beyond the last.
struct Kept {
  const uint8_t* bits = nullptr;  // null: no dropout
  double factor = 1.0;            // by which a kept element is multiplied: 1 / (1 - p)
};

// Token t's row of the table: position(t) = ids ? ids[slot(t)] : offset + slot(t), where
// slot(t) = t / divide % count.
//   (B, L): divide 1, count L     (L, B): divide B, count L     a row a token: divide 1, count T
struct Positions {
  const void* table = nullptr;  // null: none are added
  int64_t stride;               // elements from row to row
  int64_t offset;
  Integers ids;
  int64_t divide = 1;
  int64_t count = 1;
};

// What has no value here is set for each request: clearing all of it first would take longer than
// the row of a single token.
struct Gather {
  Integers ids;
  int64_t tokens;
  const void* weight;
  int64_t weight_stride;
  int64_t dim;
  double scale = 1.0;  // 1: an exact multiplication, the same bits as none
  Positions positions;
  Kept kept;
  void* out;            // (tokens, dim), contiguous
  bool stream = false;  // non-temporal stores: they pay for outputs that no cache holds
};

// A row of gradient for each of some ids: row(g) = sum of the rows grad[order[i]], times dropout's
// factor, times scale, over i in [first[g], first[g + 1]), in this order, from zero; each
// has a token.
struct SumRows {
  const void* grad = nullptr;  // (tokens, dim), contiguous
  int64_t dim = 0;
  double scale = 1.0;
  Kept kept;
  const int32_t* order = nullptr;
  const int32_t* first = nullptr;
  const int64_t* row = nullptr;  // where row g stands in `out`; null: at g
  void* out = nullptr;
  int64_t out_stride = 0;
  void* scratch = nullptr;  // a row: the sum is made here, and added to `out`. null: `out` is set
};

// at::dropout's multiplication, of values or of their gradient.
struct Drop {
  const void* x;
  Kept kept;
  void* out;
};

struct GatherKernels {
  void (*gather[kTypes])(const Gather& request, int64_t begin, int64_t end);  // of the tokens
  // The first of n integers that is not in [0, bound), or -1.
  int64_t (*first_outside)(const Integers& ids, int64_t n, int64_t bound);
};

struct SumKernels {
  void (*sum_rows[kTypes])(const SumRows& request, int64_t begin, int64_t end);  // of its rows
};

struct DropKernels {
  // Of the elements; for the types that round each operation.
  void (*drop[4])(const Drop& request, int64_t begin, int64_t end);
};

struct RandomKernels {
  // mt19937's next 624 words, in place.
  void (*twist)(uint32_t* state);
  // A bit for each of n <= 64 pairs of its words: whether the 53-bit number that they are, once
  // tempered, is below `limit`.
  uint64_t (*keep_mt19937)(const uint32_t* words, int n, uint64_t limit);
  // A bit for each of the next 64 numbers of MCG31m1, x[0] ... of which are the first kMcgLanes:
  // whether it is below `limit`. Moves x on.
  uint64_t (*keep_mcg31)(uint64_t* x, uint64_t limit);
};
constexpr int kMcgLanes = 8;

}  // namespace posenc::kernels::embed

// The request of the kernel of an encoder's embeddings, and the functions that take it. C headers
// only: the source in isa/ is compiled once per instruction set.
//
//   embeddings.cpp      out[t] = dropout(norm(weight[ids[t]] * scale + row_0(t) + row_1(t) + ...))
#pragma once
#include "kernels/embed.h"

namespace posenc::kernels::embed {

constexpr int kEmbeddingsTables = 4;  // at most, in addition to the tokens' own
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

// All arrays are float32. Rows are added in the order of `added`.
struct EmbeddingsRequest {
  Integers ids;
  int64_t tokens = 0;
  const float* weight = nullptr;
  int64_t weight_stride = 0;
  int64_t dim = 0;
  float scale = 1.0f;  // 1: an exact multiplication, the same bits as without it
  int tables = 0;      // how many of these there are
  Positions added[kEmbeddingsTables];
  EmbeddingsNorm norm;
  DropoutMask kept;
  float* out = nullptr;  // (tokens, dim), contiguous
};

// How the norm rounds: at::layer_norm has fused multiply-adds where ATen runs its code for AVX2 or
// AVX-512, and rounds each product in ATen's default code.
enum class NormRounding { Fused, Separate };
constexpr int kNormRoundings = 2;

struct EmbeddingsKernels {
  // Tokens [begin, end). Null for Fused where the instruction set has no such instruction.
  void (*embeddings[kNormRoundings])(const EmbeddingsRequest& request, int64_t begin, int64_t end);
};

}  // namespace posenc::kernels::embed

// The request of the kernel that makes attention weights of products, and the functions that take
// it: isa/attention_weights.cpp. C headers only: that source is compiled once per instruction set.
#pragma once
#include <stdint.h>

namespace posenc::kernels::inference {

// When a mask is added: relative::Masking.
enum class AddedMask { AfterTerm, WithTerm, Twice };

// The weights of a row all of whose keys are masked.
enum class MaskedRow {
  NaN,    // as of a softmax of -inf
  Zeros,  // a query that may attend to nothing
  Alike   // 1 / keys each, as of a softmax of the lowest number: scores to which a mask adds -inf
          // become it too, whatever they were
};

constexpr int64_t kNotCausal = -1;

// score = scoring(product, term, mask), each operation rounded as LibTorch rounds it, and, for
// weights, the softmax of each row, in one pass over memory. Rows of what is added are anywhere: a
// bias by distance is one row, of which each query reads another part, and those of all heads and
// sequences may be the same.
struct WeightsRequest {
  const float* products;  // (rows, keys)
  int64_t products_stride;
  int64_t rows, keys;
  float scale = 1.0f;
  bool divides = false;  // by the scale; otherwise times the scale
  bool scales_products = false, scales_term = false, scales_sum = false;  // sum: before the mask
  const float* term = nullptr;                                            // added, or null
  int64_t term_stride = 0;
  const float* mask = nullptr;  // added as well, or null
  int64_t mask_stride = 0;
  AddedMask added_mask = AddedMask::AfterTerm;
  const bool* allowed = nullptr;  // other scores become `fill`; null: all are allowed
  int64_t allowed_stride = 0;
  float fill = -__builtin_inff();  // the lowest number for weights of MaskedRow::Alike
  bool is_softmax = true;          // otherwise the result is the scores
  MaskedRow masked_row = MaskedRow::NaN;
  // Row i has weights of keys 0 .. first_causal + i, and zeros after these. kNotCausal: of all.
  int64_t first_causal = kNotCausal;
  float* out;  // (rows, keys); may be the products
  int64_t out_stride;
};

struct WeightsKernels {
  void (*weigh)(const WeightsRequest& request, int64_t begin, int64_t end);  // rows [begin, end)
};

}  // namespace posenc::kernels::inference

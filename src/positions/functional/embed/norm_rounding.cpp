#include "positions/functional/embed/norm_rounding.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>

#include <cstring>

#include "kernels/dispatch.h"
#include "positions/functional/probe.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

// Whether a norm of rows of this width has ATen's bits.
bool has_atens_bits(kernel::NormRounding rounding, int64_t width) {
  constexpr int64_t kRows = 9;
  constexpr double kEps = 1e-5;
  const auto run = kernels::chosen().embeddings.embeddings[static_cast<int>(rounding)];
  if (run == nullptr) return false;
  const at::Tensor x = scattered({kRows, width}, 1.7), weight = scattered({width}, 2.9),
                   bias = scattered({width}, 0.3), out = at::empty_like(x);
  int64_t rows[kRows];
  for (int64_t i = 0; i < kRows; ++i) rows[i] = i;
  kernel::EmbedRequest q;
  q.ids = {rows, /*wide=*/true};
  q.tokens = kRows;
  q.weight = x.const_data_ptr<float>();
  q.weight_stride = q.dim = width;
  q.norm.weight = weight.const_data_ptr<float>();
  q.norm.bias = bias.const_data_ptr<float>();
  q.norm.eps = static_cast<float>(kEps);
  q.out = out.data_ptr<float>();
  run(q, 0, kRows);
  const at::Tensor expected = at::layer_norm(x, {width}, weight, bias, kEps);
  return std::memcmp(out.const_data_ptr(), expected.const_data_ptr(), out.nbytes()) == 0;
}

// The widths have a tail, an incomplete chunk, and several levels of merges.
std::optional<kernel::NormRounding> find_rounding() {
  const at::NoGradGuard no_grad;
  for (const auto rounding : {kernel::NormRounding::Fused, kernel::NormRounding::Separate}) {
    if (has_atens_bits(rounding, 5) && has_atens_bits(rounding, 768) &&
        has_atens_bits(rounding, 1027))
      return rounding;
  }
  return std::nullopt;
}

}  // namespace

std::optional<kernel::NormRounding> norm_rounding() {
  static const auto found = find_rounding();
  return found;
}

}  // namespace posenc::functional

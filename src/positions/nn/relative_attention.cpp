#include "posenc/positions/nn/relative_attention.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include <ostream>
#include <vector>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"

namespace posenc {

RelativeAttentionImpl::RelativeAttentionImpl(RelativeAttentionOptions options_)
    : options(std::move(options_)) {
  RelativeAttentionImpl::reset();
}

void RelativeAttentionImpl::reset() {
  check_positive("RelativeAttention", "head_dim", options.head_dim());
  const int64_t own = relative_rows(options.index());
  const int64_t rows = own > 0 ? own : options.rows();
  check_positive("RelativeAttention", "rows", rows);
  TORCH_CHECK_VALUE(options.num_heads() >= 0,
                    "[RelativeAttention] num_heads must not be negative. Got ",
                    options.num_heads());
  relative_index(torch::zeros({0}, torch::kLong), options.index());  // checks its members
  std::vector<int64_t> sizes = {rows, options.head_dim()};
  if (options.num_heads() > 0) sizes.insert(sizes.begin(), options.num_heads());
  weight = register_parameter("weight", torch::empty(sizes));
  if (!SkipInit::is_active()) reset_parameters();
}

void RelativeAttentionImpl::reset_parameters() { torch::nn::init::normal_(weight); }

void RelativeAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "RelativeAttention", options,
                       RelativeAttentionOptions(relative::Shift{-1}, -1));
}

torch::Tensor RelativeAttentionImpl::forward(const torch::Tensor& q, const torch::Tensor& k,
                                             const torch::Tensor& mask, int64_t offset) {
  const bool of_keys = options.contract() == relative::Contract::Key;
  TORCH_CHECK_VALUE(q.dim() == 4 && k.dim() == 4,
                    "[RelativeAttention] q must be (B, H, Q, D) and k (B, H, K, D). Got ",
                    q.sizes(), " and ", k.sizes());
  const auto* shift = std::get_if<relative::Shift>(&options.index());
  if (shift != nullptr && !of_keys && offset >= 0) {
    const relative::DistanceVectors term = {q, weight, {shift->origin - offset}};
    return relative_scores(q, k, term, mask, options.scoring());
  }
  const torch::Tensor term = relative_term(of_keys ? k : q, weight, of_keys ? q.size(2) : k.size(2),
                                           options.index(), options.contract(), offset);
  return relative_scores(q, k, term, mask, options.scoring());
}

}  // namespace posenc

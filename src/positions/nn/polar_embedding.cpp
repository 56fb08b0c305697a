#include "posenc/positions/nn/polar_embedding.h"

#include <torch/types.h>

#include <numbers>
#include <ostream>
#include <utility>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/functional/rotary/compose.h"

namespace posenc {
namespace {

constexpr double kWholeTurn = 2.0 * std::numbers::pi;

}  // namespace

PolarEmbeddingImpl::PolarEmbeddingImpl(PolarEmbeddingOptions options_)
    : options(std::move(options_)) {
  PolarEmbeddingImpl::reset();
}

void PolarEmbeddingImpl::reset() {
  check_positive("PolarEmbedding", "dim", options.dim());
  check_positive("PolarEmbedding", "heads", options.heads());
  learned_bias =
      register_parameter("learned_bias", torch::empty({options.heads(), 1, options.dim()}));
  const torch::Tensor frequencies = functional::polar_frequencies(options.dim(), options.base());
  inv_freq = register_buffer("inv_freq", frequencies.to(learned_bias.scalar_type()));
  if (!SkipInit::is_active()) reset_parameters();
}

void PolarEmbeddingImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  if (options.bias_uniform_init()) {
    learned_bias.uniform_(-kWholeTurn, 0.0);
  } else {
    learned_bias.zero_();
  }
}

void PolarEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "PolarEmbedding", options, PolarEmbeddingOptions(-1, -1));
}

functional::QueryKey PolarEmbeddingImpl::forward(const torch::Tensor& q, const torch::Tensor& k,
                                                 int64_t offset,
                                                 const torch::Tensor& position_ids) {
  const torch::Tensor& like = q.defined() ? q : k;
  TORCH_CHECK_VALUE(like.defined(), "[PolarEmbedding] q or k must be a tensor");
  for (const torch::Tensor* x : {&q, &k}) {
    TORCH_CHECK_VALUE(
        !x->defined() || ((x->dim() == 3 || x->dim() == 4) && x->size(-1) == options.dim()),
        "[PolarEmbedding] q and k must be (H, L, D) or (B, H, L, D), D = ", options.dim(), ". Got ",
        x->sizes());
  }
  TORCH_CHECK_VALUE(!k.defined() || k.size(-3) == options.heads(), "[PolarEmbedding] k must have ",
                    options.heads(), " heads. Got ", k.sizes());
  const int64_t tokens = like.size(-2);
  const RotaryOptions any(2 * options.dim(), rotary::Pairing::Halves);
  functional::check_rotary_offset("PolarEmbedding", any, offset, position_ids, tokens);
  const torch::Tensor ids =
      position_ids.defined()
          ? position_ids
          : torch::arange(offset, offset + tokens,
                          torch::TensorOptions(torch::kLong).device(like.device()));
  torch::Tensor angles = functional::polar_angles(ids, inv_freq);
  if (angles.dim() == 3) angles = angles.unsqueeze(1);  // (B, 1, L, D)
  functional::QueryKey result;
  if (q.defined()) std::get<0>(result) = functional::polar_embedding(q, angles);
  if (k.defined()) {
    const torch::Tensor bias = learned_bias.clamp(-kWholeTurn, 0.0);
    std::get<1>(result) = functional::polar_embedding(k, angles + bias);
  }
  return result;
}

}  // namespace posenc

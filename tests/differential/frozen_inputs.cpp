#include "differential/frozen_inputs.h"

#include <torch/utils.h>

#include <cmath>

#include "differential/frozen_edits.h"

namespace posenc::differential {
namespace {

// A bias of any layout: contiguous, broadcast, transposed, lazily negated, with a NaN. That is not
// of padding: a row of padding that is NaN reaches all tokens in the next layer of a module, as in
// PyTorch, since attention multiplies it by 0; a frozen model drops it.
at::Tensor any_bias(Drawn& drawn, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                    const at::Tensor& tokens) {
  auto bias = torch::randn({drawn.coin() ? batch : 1, drawn.coin() ? heads : 1, queries, keys});
  if (drawn.coin(0.2)) bias = torch::imag(torch::conj(torch::complex(bias * 0.1, bias)));
  if (drawn.coin(0.2)) bias = bias.transpose(2, 3).contiguous().transpose(2, 3);
  const bool has_nan = drawn.coin(0.1) && bias.numel() > 0 && !bias.is_neg();
  if (has_nan && (!tokens.defined() || tokens.select(1, 0).ne(0).all().item<bool>()))
    bias.select(0, 0).select(0, 0).select(0, 0).select(0, 0).copy_(any_nan(drawn));
  if (drawn.coin(0.1)) bias.select(3, drawn.below(keys)).fill_(-INFINITY);
  return bias;
}

}  // namespace

void randomise(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& p : module.parameters()) {
    if (p.dim() == 1) p.add_(torch::randn_like(p), 0.2);
  }
  module.eval();
}

at::Tensor any_tokens(Drawn& drawn, int64_t batch, int64_t length) {
  auto tokens = torch::ones({batch, length}, torch::kLong);
  for (int64_t b = 0; b < batch && length > 0; ++b) {
    const int64_t real = drawn.between(1, length),
                  begin = drawn.coin() ? 0 : drawn.below(length - real + 1);
    tokens[b].zero_().narrow(0, begin, real).fill_(drawn.any<int64_t>({1, 1, -1}));
  }
  return tokens;
}

AttentionMask any_mask(Drawn& drawn, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                       const at::Tensor& tokens) {
  AttentionMask mask;
  std::string made;
  if (drawn.coin() && tokens.defined())
    mask = mask & AttentionMask::key_padding(tokens), made += " padding";
  if (drawn.coin(0.3)) mask = mask & AttentionMask::causal(drawn.below(3)), made += " causal";
  if (drawn.coin(0.3)) {
    mask = mask & AttentionMask::additive(any_bias(drawn, batch, heads, queries, keys, tokens));
    made += " bias";
  }
  if (drawn.coin(0.2)) {
    auto allowed = torch::rand({batch, 1, queries, keys}) < 0.7;
    if (keys > 0) allowed.select(3, 0).fill_(true);
    mask = mask & AttentionMask::allowed(allowed), made += " allowed";
  }
  if (drawn.coin(0.2) && queries > 0) {  // a query that may attend to nothing
    auto allowed = torch::ones({batch, heads, queries, keys}, torch::kBool);
    const bool in_all = drawn.coin(0.3);
    (in_all ? allowed : allowed.narrow(1, 0, 1)).select(2, drawn.below(queries)).fill_(false);
    mask = mask & AttentionMask::allowed(allowed), made += " blind";
  }
  if (!made.empty()) drawn.did("mask" + made);
  return mask;
}

at::Tensor of_tokens(const at::Tensor& x, const AttentionMask& mask, bool batch_first) {
  const auto kept = mask.padding_keys();
  if (!kept.defined() || !x.defined()) return x;
  const auto rows = (batch_first ? kept : kept.t()).unsqueeze(-1);
  return rows.size(1) == x.size(1) && rows.size(0) == x.size(0) ? x.masked_fill(~rows, 0.0) : x;
}

}  // namespace posenc::differential

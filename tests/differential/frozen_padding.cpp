// Frozen stacks and encoders of every kind of layers beside their modules: what tokens get, where
// padding is dropped and where all rows are computed, with each option that speaks of padding.

#include <torch/utils.h>

#include "differential/frozen_inputs.h"
#include "inference/freeze/model.h"
#include "inference/layer_kinds.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::differential {
namespace {

using testing::LayerKind;
using Tensors = std::vector<at::Tensor>;

void same(Drawn& drawn, const Tensors& got, const Tensors& expected, const char* when) {
  const std::string why = difference(got, expected, kFrozenTolerance);
  if (!why.empty()) drawn.fail(std::string(when) + ": " + why);
}

void stack_case(Drawn& drawn, const LayerKind& kind) {
  const auto& layer = kind.stack.layer();
  TransformerEncoder model(kind.stack);
  randomise(*model);
  const int64_t batch = drawn.between(1, 4), length = drawn.between(1, 12);
  const auto x = torch::randn({batch, length, layer.d_model()});
  const auto tokens = any_tokens(drawn, batch, length);
  AttentionMask mask = AttentionMask::key_padding(tokens);
  if (!testing::mixes_all_tokens(kind.stack))
    mask = mask & any_mask(drawn, batch, layer.num_heads(), length, length, tokens);
  at::Tensor kept;
  if (drawn.coin()) kept = drawn.coin() ? tokens : (torch::rand({batch, length}) < 0.7);
  TransformerEncoderRecord record, own, all;
  record.output_hidden_states = own.output_hidden_states = all.output_hidden_states = true;
  const auto frozen = freeze(model);
  const auto expected = model->forward_with(x, mask, record, {}, kept);
  const auto got = frozen.forward_with(x, mask, own, {}, {}, std::nullopt, kept);
  const auto only = [&](Tensors states, const at::Tensor& last) {
    states.push_back(last);
    for (at::Tensor& one : states) one = of_tokens(one, mask, true);
    return states;
  };
  same(drawn, only(own.hidden_states, got), only(record.hidden_states, expected),
       "padding dropped");
  const inference::LayerInputs inputs = {{}, {}, std::nullopt, kept};
  const auto whole = inference::run(*inference::FrozenAccess::model(frozen), x, mask, inputs,
                                    torch::ones({1, 1}, torch::kBool), all);
  same(drawn, {whole}, {expected}, "all rows computed");
}

void encoder_case(Drawn& drawn, const LayerKind& kind) {
  using encoder::Pooling;
  const int64_t vocab = 30, width = kind.stack.layer().d_model();
  EncoderOptions how(EncoderEmbeddingsOptions(vocab, width).position_rows(20),
                     TransformerEncoderOptions(kind.stack));
  if (drawn.coin()) how.encoder().norm(true);
  if (drawn.coin()) how.zero_padding(true).zero_hidden_padding(drawn.coin());
  if (drawn.coin(0.2) && !testing::mixes_all_tokens(kind.stack)) how.causal(true);
  how.pad_token_id(0).pooling(
      drawn.any({Pooling::None, Pooling::TanhOfFirst, Pooling::First, Pooling::EndToken,
                 Pooling::LargestToken, Pooling::LinearOfLast, Pooling::NormOfFirst,
                 Pooling::LastToken, Pooling::Last, Pooling::Mean}));
  Encoder model(how);
  randomise(*model);
  const int64_t batch = drawn.between(1, 4), length = drawn.between(1, 12);
  const auto ids = torch::randint(vocab, {batch, length}, torch::kLong);
  const auto tokens = any_tokens(drawn, batch, length);
  auto inputs = EncoderInputs().attention_mask(tokens).output_hidden_states(drawn.coin());
  auto wanted = tokens;
  if (drawn.coin()) {  // DeBERTa's padding sees the mean of what is computed
    const double share = kind.stack.layer().disentangled() ? 1.0 : 0.5;
    inputs.computed_mask((torch::rand({batch, length}) <= share).to(torch::kLong));
    wanted = tokens.ne(0).logical_or(inputs.computed_mask());
    drawn.did("rows computed");
  }
  const auto& transformer_xl = how.encoder().layer().transformer_xl();
  if (transformer_xl && transformer_xl->segments() && drawn.coin())
    inputs.token_type_ids(torch::randint(2, {batch, length}, torch::kLong));
  const auto results = [&](const EncoderOutput& out) {
    Tensors all = {of_tokens(out.last_hidden_state, AttentionMask::key_padding(wanted), true),
                   out.pooled};
    for (const at::Tensor& state : out.hidden_states)
      all.push_back(of_tokens(state, AttentionMask::key_padding(wanted), true));
    return all;
  };
  same(drawn, results(freeze(model).forward(ids, inputs)), results(model->forward(ids, inputs)),
       "encoder");
}

}  // namespace

void padding_case(Drawn& drawn) {
  const torch::NoGradGuard no_grad;
  const int64_t heads = drawn.between(1, 3);
  const auto kinds = testing::layer_kinds(4 * heads * drawn.between(2, 3), heads);
  const auto& kind = kinds[static_cast<size_t>(drawn.below(static_cast<int64_t>(kinds.size())))];
  drawn.did(kind.name);
  drawn.coin() ? stack_case(drawn, kind) : encoder_case(drawn, kind);
}

}  // namespace posenc::differential

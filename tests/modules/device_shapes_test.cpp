// Embeddings and positions at random shapes, dtypes and memory layouts on a device whose memory the
// host cannot read: the CPU's results and gradients, and no forward or backward waits for it.

#include <gtest/gtest.h>

#include "modules/device_trials.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/positions/nn/fourier_features.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/learned_position_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/rotary_position_embedding_2d.h"
#include "posenc/positions/nn/sine_position_embedding_2d.h"
#include "posenc/positions/nn/sinusoidal_timesteps.h"
#include "posenc/positions/nn/timestep_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/nn/vision_embeddings.h"

namespace posenc::device_shapes_test {
namespace {

using testing::Draw;
using testing::forward_first;
using testing::Tensors;
using testing::Trial;
using testing::TrialKind;
using torch::Tensor;

Trial token_and_position(Draw& draw) {
  const int64_t vocab = draw.size(30), width = draw.even(20), length = draw.size(12);
  const auto source =
      draw.dice.any({TableSource::Buffer, TableSource::Factored, TableSource::OnTheFly});
  const bool grows = source == TableSource::Buffer && draw.dice.coin();
  const auto sinusoid =
      SinusoidOptions(width).precision(draw.dice.any({Precision::Reference, Precision::Exact}));
  const auto options = TokenAndPositionEmbeddingOptions(vocab, width, grows ? 2 : 20)
                           .scale(draw.dice.any({Scale(Scale::None), Scale(Scale::SqrtDim)}))
                           .dropout(0.3)
                           .table_source(source)
                           .sinusoid(sinusoid)
                           .grow(grows);
  const int64_t offset = draw.dice.below(5);
  return {std::make_shared<TokenAndPositionEmbeddingImpl>(options),
          {draw.ids({draw.batch(), length}, vocab)},
          [offset](torch::nn::Module& module, const Tensors& x) {
            return dynamic_cast<TokenAndPositionEmbeddingImpl&>(module).forward(x[0], offset);
          }};
}

Trial positional_encoding(Draw& draw) {
  const int64_t width = draw.even(20), length = draw.size(12);
  const auto source =
      draw.dice.any({TableSource::Buffer, TableSource::Factored, TableSource::OnTheFly});
  const bool explicit_ids = source == TableSource::Buffer && draw.dice.coin();
  Tensors inputs = {draw.vectors({draw.batch(), length, width})};
  if (explicit_ids) inputs.push_back(draw.ids({length}, 20));
  return {std::make_shared<PositionalEncodingImpl>(
              PositionalEncodingOptions(width, 20).dropout(0.3).table_source(source)),
          inputs, [](torch::nn::Module& module, const Tensors& x) {
            auto& self = dynamic_cast<PositionalEncodingImpl&>(module);
            return x.size() == 1 ? self.forward(x[0], 3) : self.forward(x[0], 0, x[1]);
          }};
}

Trial look_up(Draw& draw) {
  const int64_t vocab = draw.size(30), width = draw.even(20);
  const Tensors ids = {draw.ids({draw.batch(), draw.size(12)}, vocab)};
  switch (draw.dice.below(3)) {
    case 0:
      return {std::make_shared<TokenEmbeddingImpl>(
                  TokenEmbeddingOptions(vocab, width).scale(Scale::SqrtDim).padding_idx(0)),
              ids, forward_first<TokenEmbeddingImpl>};
    case 1:
      return {
          std::make_shared<PositionEmbeddingImpl>(PositionEmbeddingOptions(width).max_len(vocab)),
          ids, forward_first<PositionEmbeddingImpl>};
    default: break;
  }
  return {std::make_shared<LearnedPositionEmbeddingImpl>(
              LearnedPositionEmbeddingOptions(vocab + 2, width).offset(2)),
          ids, forward_first<LearnedPositionEmbeddingImpl>};
}

// The embeddings of an encoder, with its optional inputs.
Trial encoder_embeddings(Draw& draw) {
  const int64_t vocab = 3 + draw.size(30), length = draw.size(12), batch = draw.batch();
  const auto rule =
      draw.dice.any({embeddings::PositionIds::Arange, embeddings::PositionIds::FromIds,
                     embeddings::PositionIds::FromMask});
  auto options = EncoderEmbeddingsOptions(vocab, draw.even(20))
                     .position_rows(40)
                     .position_ids(rule)
                     .position_offset(rule == embeddings::PositionIds::FromMask ? 2 : 0)
                     .type_vocab_size(draw.dice.coin() ? 2 : 0)
                     .norm(draw.dice.any({embeddings::Norm::None, embeddings::Norm::AfterSum}))
                     .dropout(0.3);
  if (rule == embeddings::PositionIds::FromIds) options.padding_idx(1);
  const bool types = options.type_vocab_size() > 0;
  const bool masked = rule == embeddings::PositionIds::FromMask;
  return {std::make_shared<EncoderEmbeddingsImpl>(options),
          {draw.ids({batch, length}, vocab), draw.ids({batch, length}, 2),
           draw.tokens_mask(batch, length)},
          [=](torch::nn::Module& module, const Tensors& x) {
            EncoderEmbeddingsInputs inputs;
            if (types) inputs.token_type_ids(x[1]);
            if (masked) inputs.attention_mask(x[2]);
            return dynamic_cast<EncoderEmbeddingsImpl&>(module).forward(x[0], inputs);
          }};
}

// Also of another size than the model's, whose positions are resized.
Trial vision_embeddings(Draw& draw) {
  const int64_t patch = draw.size(3), side = draw.size(4);
  const auto options = VisionEmbeddingsOptions(side * patch, patch, draw.even(10))
                           .num_channels(draw.size(3))
                           .dropout(0.3)
                           .norm(draw.dice.coin())
                           .mask_token(draw.dice.coin());
  const int64_t rows = draw.dice.coin() ? side : draw.size(5), columns = draw.size(5);
  const int64_t batch = 1 + draw.batch();  // LibTorch's convolution refuses an empty batch
  const bool masks = options.mask_token();
  return {std::make_shared<VisionEmbeddingsImpl>(options),
          {draw.vectors({batch, options.num_channels(), rows * patch, columns * patch}),
           torch::rand({batch, rows * columns}) < 0.4},
          [masks](torch::nn::Module& module, const Tensors& x) {
            VisionEmbeddingsInputs inputs;
            if (masks) inputs.bool_masked_pos(x[1]);
            return dynamic_cast<VisionEmbeddingsImpl&>(module).forward(x[0], inputs);
          }};
}

Trial rotary(Draw& draw) {
  const int64_t width = draw.even(10), length = draw.size(12), batch = draw.batch();
  const auto options = RotaryEmbeddingOptions(draw.rotary(width))
                           .head_axis(rotary::HeadAxis::BeforeLength)
                           .cache_rows(draw.dice.any({1, 5, 1000}));
  const int64_t offset = draw.dice.below(5);
  return {std::make_shared<RotaryEmbeddingImpl>(options),
          {draw.vectors({batch, 4, length, width}), draw.vectors({batch, 2, length, width})},
          [offset](torch::nn::Module& module, const Tensors& x) {
            auto [q, k] = dynamic_cast<RotaryEmbeddingImpl&>(module).forward(x[0], x[1], offset);
            return torch::cat({q, k}, 1);
          }};
}

Trial rotary_2d(Draw& draw) {
  const int64_t width = 4 * draw.size(5), rows = draw.size(4), columns = draw.size(4);
  const int64_t prefix = draw.dice.below(3), batch = draw.batch();
  auto options = rotary_preset("dinov3", width);
  if (draw.dice.coin()) options.precision(Precision::Exact);
  const auto of = RotaryPositionEmbedding2dOptions(options).prefix_tokens(prefix).cached_grids(
      draw.dice.below(2));
  return {std::make_shared<RotaryPositionEmbedding2dImpl>(of),
          {draw.vectors({batch, 3, prefix + rows * columns, width})},
          [=](torch::nn::Module& module, const Tensors& x) {
            auto& self = dynamic_cast<RotaryPositionEmbedding2dImpl&>(module);
            return std::get<0>(self.forward(x[0], {}, rows, columns));
          }};
}

Trial features(Draw& draw) {
  switch (draw.dice.below(4)) {
    case 0:
      return {std::make_shared<FourierFeaturesImpl>(
                  FourierFeaturesOptions(3, draw.size(6)).include_input(draw.dice.coin())),
              {draw.vectors({draw.batch(), 3})},
              forward_first<FourierFeaturesImpl>};
    case 1:
      return {std::make_shared<SinePositionEmbedding2dImpl>(
                  SinePositionEmbedding2dOptions(4 * draw.size(5))),
              {torch::rand({draw.batch(), draw.size(6), draw.size(6)}) < 0.3},
              forward_first<SinePositionEmbedding2dImpl>};
    case 2:
      return {std::make_shared<TimestepEmbeddingImpl>(
                  TimestepEmbeddingOptions(draw.even(9), draw.size(5))),
              {draw.ids({draw.batch()}, 20)},
              forward_first<TimestepEmbeddingImpl>};
    default: break;
  }
  return {std::make_shared<SinusoidalTimestepsImpl>(draw.size(9) + 1, draw.size(9)),
          {draw.ids({draw.batch()}, 1000)},
          forward_first<SinusoidalTimestepsImpl>};
}

const TrialKind kTrials[] = {
    {"TokenAndPosition", token_and_position},
    {"PositionalEncoding", positional_encoding},
    {"LookUps", look_up},
    {"EncoderEmbeddings", encoder_embeddings},
    {"VisionEmbeddings", vision_embeddings},
    {"Rotary", rotary},
    {"Rotary2d", rotary_2d},
    {"Features", features},
};

class Embeddings : public ::testing::TestWithParam<TrialKind> {};

INSTANTIATE_TEST_SUITE_P(AtRandomShapes, Embeddings, ::testing::ValuesIn(kTrials),
                         [](const auto& info) { return info.param.name; });

TEST_P(Embeddings, KeepTheDeviceLaws) { testing::expect_device_laws(GetParam()); }

}  // namespace
}  // namespace posenc::device_shapes_test

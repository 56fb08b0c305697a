#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "inference/models.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::testing {

/// The distance of `got` from `expected`, relative to the size of the latter.
inline double distance(const torch::Tensor& got, const torch::Tensor& expected) {
  return ((got - expected).norm() / expected.norm()).item<double>();
}

template <typename T>
std::string printed(const T& model) {
  std::ostringstream stream;
  stream << model;
  return stream.str();
}

/// Three layers, and a table of 50 tokens.
inline EncoderOptions small_options(
    const TransformerEncoderLayerOptions& layer = TransformerEncoderLayerOptions(48, 4)) {
  return {EncoderEmbeddingsOptions(50, 48).position_rows(40).type_vocab_size(2),
          TransformerEncoderOptions(TransformerEncoderLayerOptions(layer).d_ff(100), 3)};
}

inline Encoder small_encoder(const EncoderOptions& options = small_options()) {
  torch::manual_seed(testing::seed(20));
  Encoder model(options);
  model->eval();
  return model;
}

/// A frozen model of these options throws after a table or a layer of its source has changed.
inline void expect_changes_are_seen(const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  const auto ids = torch::zeros({1, 3}, torch::kLong);
  for (const bool in_table : {true, false}) {
    const Encoder model = small_encoder();
    const auto frozen = freeze(model, options);
    EXPECT_NO_THROW(frozen.forward(ids));
    (in_table ? model->embeddings->tokens->weight : model->encoder->parameters()[0]).mul_(2.0);
    EXPECT_THROW(frozen.forward(ids), c10::Error);
  }
}

}  // namespace posenc::testing

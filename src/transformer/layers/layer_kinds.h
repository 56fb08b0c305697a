#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string_view>
#include <vector>

#include "transformer/layers/blocks.h"

namespace posenc {

/// A kind of layer of a TransformerEncoder: a row of the table in layer_kinds.cpp.
struct LayerKind {
  std::string_view layer;  ///< its class, such as `ConformerEncoderLayer`
  const char* option;      ///< that other classes refuse, such as `conformer`; may be null
  const char* with;        ///< what follows the rules for its options in errors
  bool (*is_of)(const TransformerLayerOptions& options);
  bool has_path;  ///< whether it reads LayerDropouts::path
  /// The options that it reads beside those that all kinds do; empty: all that no other kind has.
  std::vector<std::string_view> reads;
  std::shared_ptr<torch::nn::Module> (*make)(const TransformerLayerOptions& options) = nullptr;
  /// The blocks of a layer of its class; null for a class that is frozen by itself.
  std::vector<blocks::Block> (*blocks)(const torch::nn::Module& layer) = nullptr;
  /// Makes the attention of a TransformerEncoderLayer with these options; null for a kind without
  /// one.
  void (*add_attention)(TransformerEncoderLayerImpl& layer) = nullptr;
};

/// That of layers with these options.
const LayerKind& kind_of(const TransformerLayerOptions& options);
/// Throws c10::ValueError for options of a `layer`, which is a class, that are those of another
/// class, or that its kind does not read.
void check_kind(std::string_view layer, const TransformerLayerOptions& options);

}  // namespace posenc

#pragma once

#include "models/config/settings.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc {

/// Sets what all layers of T5, mT5 and UMT5 have, of encoders and decoders: RMS norms before the
/// blocks, no biases, scores that are not scaled, d_kv, dropout_rate, and the feed-forward network
/// of feed_forward_proj, or of dense_act_fn and is_gated_act where config.json has them. Throws
/// c10::ValueError for settings that are wrong.
void set_t5_layer(const Settings& config, TransformerLayerOptions& layer);

/// The settings that give the feed-forward network this activation and structure; none if `config`
/// has it.
nlohmann::json changed_t5_network(const Settings& config, Activation activation,
                                  FeedForward structure);

/// The buckets of the relative position bias; those of a decoder are not bidirectional.
relative::Buckets t5_buckets(const Settings& config, bool bidirectional);

}  // namespace posenc

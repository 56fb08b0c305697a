#include "models/config/t5_layers.h"

#include <c10/util/Exception.h>

#include <string>

#include "models/config/activation_name.h"

namespace posenc {
namespace {

constexpr int64_t kWidestT5Head = int64_t{1} << 20;
constexpr int64_t kMostBuckets = int64_t{1} << 20;

// `relu` or `gated-gelu`, which means gelu_new. transformers sets what it derives from it first,
// so that settings of these names in the file win.
struct T5Network {
  std::string activation;
  bool is_gated;
};

T5Network network_in(const Settings& config) {
  constexpr const char* kName = "feed_forward_proj";
  constexpr std::string_view kGated = "gated-";
  std::string activation = config.text(kName);
  const bool is_gated = activation.starts_with(kGated);
  if (is_gated) activation.erase(0, kGated.size());
  if (activation.find('-') != std::string::npos) {
    config.refuse(kName, "must be the name of an activation, or of one after \"gated-\"");
  }
  if (is_gated && activation == "gelu") activation = "gelu_new";
  for (const char* name : {"dense_act_fn", "is_gated_act"})
    if (config.mentions(name) && !config.has(name))
      config.refuse(name, "must be left out or have a value");
  return {config.text("dense_act_fn", activation), config.flag("is_gated_act", is_gated)};
}

}  // namespace

void set_t5_layer(const Settings& config, TransformerLayerOptions& layer) {
  const T5Network network = network_in(config);
  layer.activation(named_activation(
      config, config.has("dense_act_fn") ? "dense_act_fn" : "feed_forward_proj", network.activation,
      "must have the name of an activation of transformers that posenc has"));
  constexpr const char* kRate[] = {"dropout_rate"};
  constexpr const char* kEpsilon[] = {"layer_norm_epsilon"};
  const double rate = config.probability(kRate, 0.0);
  layer.feed_forward(network.is_gated ? FeedForward::Gated : FeedForward::Plain)
      .dropout(rate)
      .dropouts(LayerDropouts{rate, rate, rate, rate, 0.0})
      .norm_first(true)
      .norm_kind(NormKind::RMS)
      .layer_norm_eps(config.not_negative(kEpsilon, 1e-6))
      .bias(false)
      .attention_scale(1.0)
      .head_dim(config.integer("d_kv", 1, kWidestT5Head));
}

nlohmann::json changed_t5_network(const Settings& config, Activation activation,
                                  FeedForward structure) {
  const T5Network network = network_in(config);
  const bool is_gated = structure == FeedForward::Gated;
  if (activation_of(network.activation) == activation && network.is_gated == is_gated)
    return nlohmann::json::object();
  const std::string name = hf_name(config, activation);
  return {{"feed_forward_proj", (is_gated ? "gated-" : "") + name},
          {"dense_act_fn", name},
          {"is_gated_act", is_gated}};
}

relative::Buckets t5_buckets(const Settings& config, bool bidirectional) {
  constexpr const char* kBuckets = "relative_attention_num_buckets";
  constexpr const char* kDistance = "relative_attention_max_distance";
  const int64_t buckets = config.integer(kBuckets, 1, kMostBuckets);
  if (buckets < 4 || buckets % 2 != 0) {
    config.refuse(kBuckets,
                  "must be even, and at least 4: an encoder has half of the buckets for "
                  "the keys after a query");
  }
  const int64_t exact = bidirectional ? buckets / 4 : buckets / 2;
  const int64_t distance = config.integer(kDistance, 1, int64_t{1} << 31);
  if (distance <= exact) {
    config.refuse(kDistance, "must be above the number of distances with a bucket of their own, " +
                                 std::to_string(exact));
  }
  return {.num_buckets = buckets, .max_distance = distance, .bidirectional = bidirectional};
}

}  // namespace posenc

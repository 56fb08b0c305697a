#include "models/encoder/zero_biases.h"

#include <ATen/ops/zeros.h>

#include <set>
#include <utility>

#include "models/encoder/names.h"
#include "weights/load/key_map.h"

namespace posenc {

std::vector<AbsentBias> absent_biases(const EncoderConfig& config, const std::string& prefix) {
  std::vector<AbsentBias> absent;
  const auto& layer = config.options.encoder().layer();
  const auto width_of = [&](int64_t i) {
    if (!config.options.windows()) return layer.d_model();
    const auto [stage, own] = config.options.windows()->locate_layer(i);
    return config.options.windows()
        ->stages()[static_cast<std::size_t>(stage)]
        .layers()[static_cast<std::size_t>(own)]
        .layer()
        .d_model();
  };
  const std::pair<bool, const char * EncoderLayerKeys::*> biases[] = {
      {layer.query_bias(), &EncoderLayerKeys::query},
      {layer.key_bias(), &EncoderLayerKeys::key},
      {layer.value_bias(), &EncoderLayerKeys::value}};
  const auto layout = static_cast<std::size_t>(config.options.origin().layout);
  for (const auto& [is_there, part] : biases) {
    if (is_there) continue;
    const std::string whole = config.structure.keys[layout].k_bias;
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      if (!whole.empty()) {
        const std::string of_layers = config.structure.keys[layout].layer + whole;
        absent.push_back({prefix + io::fill_pattern(of_layers, {std::to_string(i)}), width_of(i)});
        continue;
      }
      const std::string weight = encoder_layer_names(config, prefix, i, part)[layout];
      absent.push_back({weight.substr(0, weight.rfind("weight")) + "bias", width_of(i)});
    }
  }
  return absent;
}

ZeroBiases::ZeroBiases(const io::TensorSource& source, const std::vector<AbsentBias>& biases)
    : SelectedSource(source) {
  std::set<std::string> replaced;
  for (const AbsentBias& bias : biases) replaced.insert(bias.name);
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    if (replaced.count(source.entries()[i].name) != 0) continue;
    select(i, source.entries()[i]);
  }
  for (const AbsentBias& bias : biases)
    entries_.push_back({.name = bias.name, .sizes = {bias.width}});
}

at::Tensor ZeroBiases::tensor(std::size_t index) const {
  return is_zeros(index) ? at::zeros(entries_[index].sizes) : SelectedSource::tensor(index);
}

at::Tensor ZeroBiases::head(std::size_t index, int64_t axis, int64_t count) const {
  return is_zeros(index) ? at::zeros({count}) : SelectedSource::head(index, axis, count);
}

void ZeroBiases::copy_to(std::size_t index, const at::Tensor& target) const {
  if (!is_zeros(index)) return SelectedSource::copy_to(index, target);
  target.zero_();
}

bool ZeroBiases::equal(std::size_t a, std::size_t b) const {
  if (is_zeros(a) || is_zeros(b)) return is_zeros(a) && is_zeros(b);
  return SelectedSource::equal(a, b);
}

void ZeroBiases::check_values(std::size_t index) const {
  if (!is_zeros(index)) SelectedSource::check_values(index);
}

}  // namespace posenc

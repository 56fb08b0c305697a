#include "models/encoder/zero_biases.h"

#include <ATen/ops/zeros.h>

#include <set>
#include <utility>

#include "models/encoder/names.h"

namespace posenc {

std::vector<std::string> absent_biases(const EncoderConfig& config, const std::string& prefix) {
  std::vector<std::string> names;
  const auto& layer = config.options.encoder().layer();
  const std::pair<bool, const char * EncoderLayerKeys::*> biases[] = {
      {layer.query_bias(), &EncoderLayerKeys::query},
      {layer.key_bias(), &EncoderLayerKeys::key},
      {layer.value_bias(), &EncoderLayerKeys::value}};
  const auto layout = static_cast<std::size_t>(config.options.origin().layout);
  for (const auto& [is_there, part] : biases) {
    if (is_there) continue;
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      const std::string weight = encoder_layer_names(config, prefix, i, part)[layout];
      names.push_back(weight.substr(0, weight.rfind("weight")) + "bias");
    }
  }
  return names;
}

ZeroBiases::ZeroBiases(const io::TensorSource& source, const std::vector<std::string>& names,
                       int64_t width)
    : source_(source), width_(width) {
  const std::set<std::string> replaced(names.begin(), names.end());
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    if (replaced.count(source.entries()[i].name) != 0) continue;
    index_.push_back(i);
    entries_.push_back(source.entries()[i]);
  }
  for (const std::string& name : names) entries_.push_back({.name = name, .sizes = {width}});
}

at::Tensor ZeroBiases::tensor(std::size_t index) const {
  return is_zeros(index) ? at::zeros({width_}) : source_.tensor(index_[index]);
}

at::Tensor ZeroBiases::head(std::size_t index, int64_t axis, int64_t count) const {
  return is_zeros(index) ? at::zeros({count}) : source_.head(index_[index], axis, count);
}

void ZeroBiases::copy_to(std::size_t index, const at::Tensor& target) const {
  if (!is_zeros(index)) return source_.copy_to(index_[index], target);
  target.zero_();
}

bool ZeroBiases::equal(std::size_t a, std::size_t b) const {
  if (is_zeros(a) || is_zeros(b)) return is_zeros(a) && is_zeros(b);
  return source_.equal(index_[a], index_[b]);
}

void ZeroBiases::check_values(std::size_t index) const {
  if (!is_zeros(index)) source_.check_values(index_[index]);
}

}  // namespace posenc

#include "inference/linear/weight_converter.h"

#include <algorithm>
#include <ostream>

#include "base/match_pattern.h"
#include "base/nearest.h"
#include "kernels/int8.h"

namespace posenc::inference {

namespace {

const char* dtype_name(WeightDtype dtype) {
  switch (dtype) {
    case WeightDtype::Float32: break;
    case WeightDtype::Int8: return "int8";
    case WeightDtype::BFloat16: return "bfloat16";
  }
  return "float32";
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const ConvertedWeights& weights) {
  if (weights.dtype != WeightDtype::Float32) stream << ", weights=" << dtype_name(weights.dtype);
  if (weights.int8_block != 0) stream << ", int8_block=" << weights.int8_block;
  if (weights.compute != ComputeDtype::Float32) stream << ", compute=bfloat16";
  if (weights.dtype == WeightDtype::Int8 && weights.compute == ComputeDtype::Float32 &&
      !weights.int8_scores)
    stream << ", int8_scores=false";
  if (weights.dtype == WeightDtype::Float32 && weights.compute == ComputeDtype::Float32)
    return stream;
  return stream << " (" << weights.converted << " of " << weights.candidates << ")";
}

WeightConverter::WeightConverter(const FreezeOptions& options, const torch::nn::Module& model)
    : options_(options), gemm_(options.gemm()) {
  TORCH_CHECK_VALUE(options.threads() >= 0,
                    "[freeze] threads must be positive, or 0 for those of LibTorch. Got ",
                    options.threads());
  const int64_t block = options.int8_block();
  TORCH_CHECK_VALUE(block == 0 || block == 64 || block == 128,
                    "[freeze] int8_block must be 64 or 128, or 0 for a scale a row. Got ", block);
  TORCH_CHECK_VALUE(block == 0 || options.weights() == WeightDtype::Int8,
                    "[freeze] int8_block must be 0 unless the weights are int8. Got ", block,
                    " and weights in ", dtype_name(options.weights()));
  for (const auto& item : model.named_parameters()) {
    if (item.value().defined()) names_.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }
}

std::string WeightConverter::name_of(const at::Tensor& source) const {
  const auto found = names_.find(source.unsafeGetTensorImpl());
  return found == names_.end() ? "" : found->second;
}

bool WeightConverter::converts(const at::Tensor& source) {
  const std::string name = name_of(source);
  const auto& exceptions = options_.weights_to_not_convert();
  const bool is_exception = std::any_of(
      exceptions.begin(), exceptions.end(),
      [&](const std::string& pattern) { return match_pattern(pattern, name).has_value(); });
  const bool converted = !is_exception && (options_.weights() != WeightDtype::Float32 ||
                                           options_.compute() != ComputeDtype::Float32);
  candidates_[name] = converted;
  TORCH_CHECK_VALUE(
      !converted || options_.weights() != WeightDtype::Int8 || options_.int8_block() != 0 ||
          source.size(1) <= kernels::int8::kMostInner,
      "[freeze] the rows of a weight in 8 bits must have at most ", kernels::int8::kMostInner,
      " elements, whose products fit in a sum of 32 bits: ", name, ". Got ", source.sizes());
  return converted;
}

ConvertedWeight WeightConverter::convert(const at::Tensor& weight, const at::Tensor& source) {
  const c10::TensorImpl* const key = source.unsafeGetTensorImpl();
  const bool is_whole = weight.is_same(source);
  if (is_whole) {
    const auto known = whole_.find(key);
    if (known != whole_.end()) return known->second;
  }
  const auto make = [&]() -> ConvertedWeight {
    if (options_.weights() == WeightDtype::Int8) return Int8Weight(weight, options_.int8_block());
    if (options_.compute() == ComputeDtype::BFloat16) return PackedBFloat16Weight(weight);
    return BFloat16Weight(weight);
  };
  const ConvertedWeight made = make();
  if (is_whole) whole_.emplace(key, made);
  OwnBytes& own = bytes_[key];
  own.bytes += inference::bytes(made);
  // A table in float32 is still shared.
  own.is_beside = options_.weights() == WeightDtype::Float32 && tables_.contains(key);
  return made;
}

kernels::inference::AttentionProducts WeightConverter::attention_products() const {
  using kernels::inference::AttentionProducts;
  if (options_.compute() == ComputeDtype::BFloat16) return AttentionProducts::BFloat16;
  if (options_.weights() == WeightDtype::Int8 && options_.int8_scores())
    return AttentionProducts::Int8Scores;
  return AttentionProducts::Float32;
}

torch_internals::CallOptions WeightConverter::call_options() const {
  const bool is_own = options_.gemm() == GemmBackend::Native;
  return {options_.threads(),
          is_own ? torch_internals::Loops::Helpers : torch_internals::Loops::LibTorch};
}

Projection WeightConverter::projection(const at::Tensor& weight, const at::Tensor& bias,
                                       const at::Tensor& source) {
  if (!converts(source)) {
    if (!weight.is_alias_of(source)) derived(source, static_cast<int64_t>(weight.nbytes()));
    return float_projection(weight, bias);
  }
  return {convert(weight, source), bias};
}

std::optional<ConvertedTable> WeightConverter::table(const at::Tensor& weight) {
  if (!converts(weight)) return std::nullopt;
  tables_.insert(weight.unsafeGetTensorImpl());
  if (options_.weights() == WeightDtype::Float32) {
    candidates_[name_of(weight)] = false;  // unless a product reads it too
    return std::nullopt;
  }
  return ConvertedTable(convert(weight, weight));
}

void WeightConverter::check_exceptions() const {
  std::vector<std::string> names;
  for (const auto& [name, converted] : candidates_) names.push_back(name);
  for (const std::string& pattern : options_.weights_to_not_convert()) {
    const bool matches = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return match_pattern(pattern, name).has_value();
    });
    TORCH_CHECK_VALUE(
        matches,
        "[freeze] weights_to_not_convert must match weights of linear layers or tables "
        "of tokens, such as ",
        detail::nearest_text(pattern, names), ". Got \"", pattern, "\"");
  }
}

ConvertedWeights WeightConverter::weights() const {
  ConvertedWeights weights = {options_.weights(), options_.int8_block(), options_.compute(),
                              options_.int8_scores()};
  for (const auto& [name, converted] : candidates_) {
    ++weights.candidates;
    if (converted) ++weights.converted;
  }
  return weights;
}

}  // namespace posenc::inference

#include "inference/linear/weight_converter.h"

#include <algorithm>
#include <ostream>

#include "base/match_pattern.h"
#include "base/nearest.h"
#include "core/low_rank.h"
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

WeightConverter::WeightConverter(const FreezeOptions& options, const torch::nn::Module& model,
                                 const FrozenArrays* arrays)
    : options_(options), model_(model), given_(arrays), gemm_(options.gemm()) {
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
    if (!item.value().defined()) continue;
    TORCH_CHECK_VALUE(additions_of(item.value()).empty(),
                      "[freeze] the model must have no adapter in training (LoraTraining): it is "
                      "saved, and merged while the model is loaded. Got one at ",
                      item.key());
    names_.emplace(item.value().unsafeGetTensorImpl(), item.key());
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

at::Tensor WeightConverter::given(const std::string& name, at::IntArrayRef sizes,
                                  at::ScalarType dtype) const {
  const auto found = given_->find(name);
  TORCH_CHECK_VALUE(found != given_->end(), "must have an array ", name, ". Got no such array");
  const at::Tensor& array = found->second;
  TORCH_CHECK_VALUE(array.sizes() == sizes && array.scalar_type() == dtype, "array ", name,
                    " must be ", dtype, " ", sizes, ". Got ", array.scalar_type(), " ",
                    array.sizes());
  return array;
}

at::Tensor WeightConverter::computed(const at::Tensor& source, const std::string& name,
                                     at::IntArrayRef sizes,
                                     const std::function<at::Tensor()>& compute) {
  const std::string whole = name_of(source) + "/" + name;
  const at::Tensor made = loads() ? given(whole, sizes, at::kFloat) : compute().contiguous();
  TORCH_INTERNAL_ASSERT(made.sizes() == sizes, whole);
  made_.emplace(whole, made);
  return made;
}

ConvertedWeight WeightConverter::make(const at::Tensor& weight, const at::Tensor& factors) const {
  const at::Tensor all = factors.defined() ? weight * factors.unsqueeze(1) : weight;
  if (options_.weights() == WeightDtype::Int8) return Int8Weight(all, options_.int8_block());
  if (options_.compute() == ComputeDtype::BFloat16) return PackedBFloat16Weight(all);
  return BFloat16Weight(all);
}

ConvertedWeight WeightConverter::take(const std::string& stem, int64_t in, int64_t out) const {
  const TakeArray array = [&](const char* name, at::IntArrayRef sizes, at::ScalarType dtype) {
    return given(stem + name, sizes, dtype);
  };
  if (options_.weights() == WeightDtype::Int8) {
    return Int8Weight(in, out, options_.int8_block(), array);
  }
  if (options_.compute() == ComputeDtype::BFloat16) return PackedBFloat16Weight(in, out, array);
  return BFloat16Weight(in, out, array);
}

ConvertedWeight WeightConverter::convert(const at::Tensor& weight, const at::Tensor& source,
                                         const at::Tensor& factors) {
  const c10::TensorImpl* const key = source.unsafeGetTensorImpl();
  const bool is_whole = weight.is_same(source) && !factors.defined();
  if (is_whole) {
    const auto known = whole_.find(key);
    if (known != whole_.end()) return known->second;
  }
  const int part = parts_[name_of(source)]++;
  const std::string stem = name_of(source) + "/" + (part == 0 ? "" : std::to_string(part) + "/");
  const ConvertedWeight made =
      loads() ? take(stem, weight.size(1), weight.size(0)) : make(weight, factors);
  std::visit(
      [&](const auto& own) {
        own.visit_arrays(
            [&](const char* name, const at::Tensor& array) { made_.emplace(stem + name, array); });
      },
      made);
  left_out_.insert(key);
  if (is_whole) whole_.emplace(key, made);
  OwnBytes& own = bytes_[key];
  own.bytes += inference::bytes(made);
  own.is_beside = kept_.contains(key);  // such as a table in float32, which is still shared
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
                                       const at::Tensor& source, const at::Tensor& factors) {
  if (converts(source)) return {convert(weight, source, factors), bias};
  if (!factors.defined()) {
    kept_.insert(source.unsafeGetTensorImpl());
    return float_projection(weight, bias);
  }
  derived(source, static_cast<int64_t>(weight.nbytes()));
  leave_out(source);
  return float_projection(
      computed(source, "scaled", weight.sizes(), [&] { return weight * factors.unsqueeze(1); }),
      bias);
}

std::optional<ConvertedTable> WeightConverter::table(const at::Tensor& weight) {
  const c10::TensorImpl* const key = weight.unsafeGetTensorImpl();
  const bool converted = converts(weight);
  if (!converted || options_.weights() == WeightDtype::Float32) kept_.insert(key);
  if (!converted) return std::nullopt;
  tables_.insert(key);
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

FrozenArrays WeightConverter::arrays() const {
  FrozenArrays arrays = made_;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point()) return;  // which no layer computes with
    const c10::TensorImpl* const key = tensor.unsafeGetTensorImpl();
    if (left_out_.contains(key) && !kept_.contains(key)) return;
    arrays.emplace(name, tensor.detach());
  };
  for (const auto& item : model_.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model_.named_buffers()) add(item.key(), item.value());
  return arrays;
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

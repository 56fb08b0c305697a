#pragma once

#include <torch/nn/module.h>

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/torch_internals/parts.h"
#include "inference/linear/projection.h"
#include "kernels/inference.h"
#include "posenc/inference/freeze_options.h"

namespace posenc::inference {

/// How many weights of a frozen model are in which dtype, or multiplied in which.
struct ConvertedWeights {
  WeightDtype dtype = WeightDtype::Float32;
  int64_t int8_block = 0;
  ComputeDtype compute = ComputeDtype::Float32;
  bool int8_scores = true;
  int64_t converted = 0, candidates = 0;
};
/// Prints ", weights=int8, int8_block=64, int8_scores=false (9 of 10)", or ", weights=int8,
/// compute=bfloat16 (9 of 10)", without what was not asked for; nothing if that is all.
std::ostream& operator<<(std::ostream& stream, const ConvertedWeights& weights);

/// What a frozen model holds of its own for a parameter: instead of it, or beside it.
struct OwnBytes {
  int64_t bytes = 0;
  bool is_beside = false;
};

/// Makes the projections and tables of a frozen model from a module's parameters, in the dtypes
/// that FreezeOptions asks for.
class WeightConverter {
 public:
  /// For parameters of `model`, by whose names the exceptions are matched. Throws c10::ValueError
  /// for a number that an option does not take.
  WeightConverter(const FreezeOptions& options, const torch::nn::Module& model);

  /// x weight^T + bias, which may be undefined. `weight` is made of the parameter `source`: a part
  /// of its rows, or its product with a layer scale.
  Projection projection(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& source);
  /// The same for a parameter itself.
  Projection projection(const at::Tensor& weight, const at::Tensor& bias) {
    return projection(weight, bias, weight);
  }
  /// A projection whose weight is always float32.
  Projection float_projection(const at::Tensor& weight, const at::Tensor& bias) {
    return {weight, bias, gemm_.choose(weight)};
  }
  /// A table of tokens that is converted; none if it stays in float32.
  std::optional<ConvertedTable> table(const at::Tensor& weight);
  /// Whether products with this parameter, of which there is a table, read another format.
  bool has_converted(const at::Tensor& weight) const {
    return tables_.contains(weight.unsafeGetTensorImpl());
  }
  /// What attentions compute their products in.
  kernels::inference::AttentionProducts attention_products() const;

  /// Records that the frozen model has `bytes` of its own in place of a parameter or buffer: what
  /// was computed from it.
  void derived(const at::Tensor& source, int64_t bytes) {
    if (source.defined()) bytes_[source.unsafeGetTensorImpl()].bytes += bytes;
  }

  /// Throws c10::ValueError for an exception that no weight matches. Called last.
  void check_exceptions() const;
  ConvertedWeights weights() const;
  /// How the frozen model is to be called.
  torch_internals::CallOptions call_options() const;
  /// The size of each parameter that was converted, in its new dtype, and of what derived() was
  /// told.
  const std::map<const c10::TensorImpl*, OwnBytes>& bytes() const { return bytes_; }

 private:
  std::string name_of(const at::Tensor& source) const;
  bool converts(const at::Tensor& source);
  ConvertedWeight convert(const at::Tensor& weight, const at::Tensor& source);

  FreezeOptions options_;
  GemmSelector gemm_;
  std::map<const c10::TensorImpl*, std::string> names_;
  std::map<std::string, bool> candidates_;  // whether each is converted
  std::map<const c10::TensorImpl*, ConvertedWeight>
      whole_;                                // parameters that were converted as they are
  std::set<const c10::TensorImpl*> tables_;  // whose products are not in float32
  std::map<const c10::TensorImpl*, OwnBytes> bytes_;
};

}  // namespace posenc::inference

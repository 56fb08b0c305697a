#pragma once

#include <torch/nn/module.h>

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/torch_internals/parts.h"
#include "inference/linear/frozen_arrays.h"
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
/// that FreezeOptions asks for. It keeps all that a frozen model computes with, by name, of which a
/// file is made; and made for the arrays of a file, it takes from them what it would have made of
/// parameters, whose numbers it then does not read.
class WeightConverter {
 public:
  /// For parameters of `model`, by whose names the exceptions are matched, and the names of
  /// `arrays` begin. `model` and `arrays` have to outlive it. Throws
  /// c10::ValueError for a number that an option does not take.
  WeightConverter(const FreezeOptions& options, const torch::nn::Module& model,
                  const FrozenArrays* arrays = nullptr);

  /// x weight^T + bias, which may be undefined. `weight` is the parameter `source` or a part of its
  /// rows; its rows are multiplied by `factors` unless these are undefined.
  Projection projection(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& source,
                        const at::Tensor& factors = {});
  /// The same for a parameter itself.
  Projection projection(const at::Tensor& weight, const at::Tensor& bias) {
    return projection(weight, bias, weight);
  }
  /// A projection whose weight is always float32.
  Projection float_projection(const at::Tensor& weight, const at::Tensor& bias) {
    kept_.insert(weight.unsafeGetTensorImpl());
    return {weight, bias, gemm_.choose(weight)};
  }
  /// What is computed of parameters whose numbers are not read elsewhere: compute(), a float32
  /// tensor of these sizes. `name` is its own in a file, after that of the parameter `source`.
  at::Tensor computed(const at::Tensor& source, const std::string& name, at::IntArrayRef sizes,
                      const std::function<at::Tensor()>& compute);
  /// The frozen model reads this parameter in float32, whatever products are made of it later.
  void keep(const at::Tensor& source) { kept_.insert(source.unsafeGetTensorImpl()); }
  /// The frozen model has what was converted or computed in place of this parameter, or nothing.
  void leave_out(const at::Tensor& source) {
    if (source.defined()) left_out_.insert(source.unsafeGetTensorImpl());
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
  /// What the frozen model computes with.
  FrozenArrays arrays() const;
  /// Whether it takes the arrays of a file.
  bool loads() const { return given_ != nullptr; }
  const FreezeOptions& options() const { return options_; }
  /// How the frozen model is to be called.
  torch_internals::CallOptions call_options() const;
  /// The size of each parameter that was converted, in its new dtype, and of what derived() was
  /// told.
  const std::map<const c10::TensorImpl*, OwnBytes>& bytes() const { return bytes_; }

 private:
  std::string name_of(const at::Tensor& source) const;
  bool converts(const at::Tensor& source);
  ConvertedWeight convert(const at::Tensor& weight, const at::Tensor& source,
                          const at::Tensor& factors = {});
  ConvertedWeight make(const at::Tensor& weight, const at::Tensor& factors) const;
  ConvertedWeight take(const std::string& stem, int64_t in, int64_t out) const;
  /// The array of this name.
  at::Tensor given(const std::string& name, at::IntArrayRef sizes, at::ScalarType dtype) const;

  FreezeOptions options_;
  const torch::nn::Module& model_;
  const FrozenArrays* given_;
  GemmSelector gemm_;
  std::map<const c10::TensorImpl*, std::string> names_;
  std::map<std::string, bool> candidates_;  // whether each is converted
  std::map<const c10::TensorImpl*, ConvertedWeight>
      whole_;                                // parameters that were converted as they are
  std::set<const c10::TensorImpl*> tables_;  // whose products are not in float32
  std::map<const c10::TensorImpl*, OwnBytes> bytes_;
  FrozenArrays made_;
  std::map<std::string, int> parts_;  // converted so far, of each parameter
  std::set<const c10::TensorImpl*> left_out_;
  std::set<const c10::TensorImpl*> kept_;  // although something else was made of them
};

}  // namespace posenc::inference

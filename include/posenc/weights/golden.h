#pragma once

#include <initializer_list>
#include <iosfwd>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "posenc/core/compare_tensors.h"
#include "posenc/core/module_ref.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

/// The outputs of a module: a tensor, several in the order of Python's tuple, or several with the
/// names of Python's dict.
class GoldenOutputs {
 public:
  /// A tensor with its name; in a tuple the names are empty.
  using Named = std::pair<std::string, at::Tensor>;

  /// The only output.
  GoldenOutputs(at::Tensor output) : tensors_{{"", std::move(output)}} {}
  /// The outputs in their order.
  GoldenOutputs(const std::vector<at::Tensor>& outputs) {
    for (const auto& output : outputs) append(output);
  }
  /// The outputs in their order.
  GoldenOutputs(std::initializer_list<at::Tensor> outputs)
      : GoldenOutputs(std::vector<at::Tensor>(outputs)) {}
  /// What a forward that has several outputs returns, such as std::tuple<Tensor, Tensor>; tuples
  /// may be nested, as that of torch::nn::LSTM.
  template <typename... Outputs>
  GoldenOutputs(const std::tuple<Outputs...>& outputs) {
    std::apply([this](const auto&... output) { (append(output), ...); }, outputs);
  }
  /// The outputs by name.
  GoldenOutputs(std::initializer_list<Named> outputs) : tensors_(outputs) {}

  /// All outputs.
  const std::vector<Named>& tensors() const { return tensors_; }

 private:
  void append(const GoldenOutputs& outputs) {
    tensors_.insert(tensors_.end(), outputs.tensors_.begin(), outputs.tensors_.end());
  }

  std::vector<Named> tensors_;
};

/// The comparison of all outputs or all gradients. gtest prints it:
/// `EXPECT_TRUE(report.ok()) << report`.
struct GoldenReport {
  /// One of the outputs or gradients.
  struct Item {
    std::string name;             ///< such as `output 'hidden'`
    TensorComparison comparison;  ///< with what Python computed
  };

  std::string subject;  ///< the file, and what wrote it
  /// Those with another shape or dtype, those that differ and those that agree, each of the three
  /// by how far they are off, as a share of the largest number that Python computed.
  std::vector<Item> items;

  /// Whether all are within the tolerance.
  bool ok() const;
  /// Lists what differs, the farthest off first; if all agree, how near they are.
  std::string to_string() const;
};

/// Writes to_string().
std::ostream& operator<<(std::ostream& out, const GoldenReport& report);

/// What a Python module computed, in a file that the Python function save_golden() writes: its
/// weights, inputs, outputs and gradients. It shows that a C++ module computes the same
/// (docs/parity.md, with a test for gtest):
///
/// ```cpp
/// posenc::Golden golden("golden.safetensors");
/// golden.load_into(tagger);
/// auto [hidden, logits] = tagger.forward(golden.input("ids"), golden.input("mask"));
/// posenc::GoldenOutputs outputs = {{"hidden", hidden}, {"logits", logits}};
/// const auto tolerance = posenc::Tolerance().rtol_of_max(1e-6);
/// auto report = golden.compare(outputs, tolerance);
/// TORCH_CHECK(report.ok(), report);
/// auto gradients = golden.compare_gradients(tagger, outputs, tolerance);
/// TORCH_CHECK(gradients.ok(), gradients);
/// ```
class Golden {
 public:
  /// Reads the file.
  ///
  /// Errors: WeightsError, also for a safetensors file that is not of save_golden().
  explicit Golden(const std::string& path);
  /// The same from memory; messages call it `name`.
  Golden(std::string name, const SafetensorsFile& file);

  /// Loads the weights into the module as load_weights() does, and remembers the options, whose
  /// names the gradients have too.
  ///
  /// Errors: WeightsError; the module is then unchanged.
  LoadReport load_into(const ModuleRef& module, const LoadOptions& options = {});

  /// The inputs on the CPU, in the order of Python's arguments. Those whose gradients are in the
  /// file require gradients.
  const StateDict& inputs() const { return inputs_; }
  /// An input by the name of Python's argument; an element of a list is `images.0`.
  ///
  /// Errors: c10::ValueError for an unknown name.
  const at::Tensor& input(const std::string& name) const;
  /// What Python computed; the name of a single output is `output`, and those of a tuple are
  /// numbers.
  const StateDict& outputs() const { return outputs_; }
  /// The file's metadata: `module` is the name of the Python class, `torch` the version.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// Compares the outputs of the C++ module with those of the Python module.
  ///
  /// Errors: c10::ValueError for another number of outputs or an unknown name.
  GoldenReport compare(const GoldenOutputs& outputs, const Tolerance& tolerance = {}) const;

  /// Backpropagates the gradient of the outputs that is in the file, and compares the gradients of
  /// the parameters and the inputs, which it replaces, with Python's. If the outputs themselves
  /// have another shape or dtype, the report says so instead. The graph is kept.
  ///
  /// Errors: as compare(); WeightsError if the file has no gradients.
  GoldenReport compare_gradients(const ModuleRef& module, const GoldenOutputs& outputs,
                                 const Tolerance& tolerance = {}) const;

 private:
  std::vector<at::Tensor> matched(const GoldenOutputs& outputs) const;
  GoldenReport report(std::vector<GoldenReport::Item> items) const;

  std::string name_;
  std::map<std::string, std::string> metadata_;
  StateDict parameters_, inputs_, outputs_, cotangents_, gradients_, input_gradients_;
  LoadOptions options_;
};

}  // namespace posenc

#pragma once

#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inference/freeze/option_values.h"
#include "inference/linear/weight_converter.h"
#include "posenc/inference/freeze_options.h"

namespace posenc::inference {

/// Detects changes to a module's tensors after it was frozen, without keeping them alive.
class StaleCheck {
 public:
  StaleCheck() = default;
  /// What copies the options of a module; null for a class without any.
  using CopyOptions = std::shared_ptr<const OptionsCopy> (*)(const torch::nn::Module& module);
  /// Throws the errors that freeze() documents for dtypes and devices. `copy` knows all classes of
  /// the source. What is in `checked_itself`, a module below, is left to a check of its own.
  explicit StaleCheck(const torch::nn::Module& source, CopyOptions copy = copy_of_options,
                      const torch::nn::Module* checked_itself = nullptr);

  /// Throws c10::Error if a tensor has other memory or another version, or is gone while the module
  /// is still alive, and if the module has other parts.
  void check() const;
  /// Counts these parameters as copies of other sizes, or as they are with a copy beside them.
  void set_converted(const std::map<const c10::TensorImpl*, OwnBytes>& bytes);
  /// Ends the check, of a source that does not outlive the frozen model's making: nothing of it is
  /// held. All bytes are then the frozen model's own.
  void release();
  /// Whether `other` has the parts of the source, by their names, with the options that they had;
  /// `where` is then the first that it does not. Nothing is compared after release().
  bool differs_from(const torch::nn::Module& other, std::string& where) const;
  /// Counts the bytes that are shared with the source's tensors, and the others.
  FrozenBytes bytes() const;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    std::string name;
    Weak tensor;
    const void* data;
    int64_t version;
    int64_t bytes;    // of what the frozen model holds
    bool is_copied;   // it holds a copy, or what was computed from it
    bool may_grow;    // a table of positions, which moves when it gets more rows after the others
    at::Tensor copy;  // of what LibTorch writes without another version: running statistics
    int64_t beside = 0;  // bytes of a copy that it holds as well
  };
  struct Part {
    std::string name;
    const torch::nn::Module* module;             // to compare addresses
    std::shared_ptr<const OptionsCopy> options;  // may be null
  };
  struct Source;
  void add_parts(const torch::nn::Module& module, const std::string& name, const Source& source);
  void add_tensors(const torch::nn::Module& module, const std::string& name, const Source& source);
  std::size_t check_parts(const torch::nn::Module& module, std::size_t part) const;

  std::weak_ptr<const torch::nn::Module> source_;
  const torch::nn::Module* checked_itself_ = nullptr;
  std::vector<Part> parts_;  // itself and all modules below it
  std::vector<Entry> entries_;
  int64_t released_bytes_ = 0;
};

}  // namespace posenc::inference

#pragma once

#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "models/lora/adapted_source.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/models/seq2seq.h"

namespace posenc::lora {

/// A loaded model as adapters see it: its tensors, or rows of them, under the names of its file.
struct LiveModel {
  std::shared_ptr<torch::nn::Module> module;
  StateDict parts;                           ///< in the model's memory
  std::map<std::string, KeySource> changes;  ///< how a part is changed from the file's
  ModelNames names;
  std::set<std::string> heads, tied;          ///< parts of a head; tables to which one is tied
  std::string prefix;                         ///< of the body in its class in transformers
  std::string folder;                         ///< that it was loaded from
  std::string task;                           ///< of a head: SEQ_CLS, ...
  std::map<std::string, const void*> memory;  ///< of the module's parameters, which parts share

  /// Throws c10::ValueError, naming `caller`, if Module::to() has moved the parameters since.
  void check_in_place(const char* caller) const;

  /// The name of a part in the class.
  std::string class_name(const std::string& part) const;
};

/// Throws c10::ValueError, naming `caller`, for a model that was not loaded.
LiveModel live_model(const char* caller, const Encoder& model);
LiveModel live_model(const char* caller, const Classifier& model);
LiveModel live_model(const char* caller, const Decoder& model);
LiveModel live_model(const char* caller, const Seq2SeqModel& model);

/// The tensors of a live model as a file has them; those that `kept` has are its values.
class LiveSource : public io::TensorSource {
 public:
  explicit LiveSource(const LiveModel& model);

  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;

  /// Keeps the values of a part, of which later calls return these.
  void keep(std::size_t index);
  /// Puts them back.
  void restore(std::size_t index);
  /// Makes a part what `adapted` has for it.
  void write(std::size_t index, const AdaptedSource& adapted);

 private:
  const KeySource* change(std::size_t index) const;

  const LiveModel& model_;
  std::map<std::size_t, at::Tensor> kept_;
};

}  // namespace posenc::lora

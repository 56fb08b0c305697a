#pragma once

#include <memory>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/lora.h"
#include "posenc/models/seq2seq.h"

namespace posenc::lora {
struct AdapterSetState;  // private
struct LoraTrainingState;
}  // namespace posenc::lora

namespace posenc POSENC_EXPORT {

/// Adapters of one loaded model, of which some are merged into its weights at a time: another task
/// costs one pass over the weights that it changes, and forward() nothing.
///
/// ```
/// auto model = posenc::load_encoder("models/base");
/// posenc::AdapterSet adapters(model);
/// adapters.add("retrieval", posenc::load_adapter("adapters/retrieval"));
/// adapters.activate({"retrieval"});
/// adapters.deactivate();  // the weights have their bits again
/// ```
///
/// The set keeps the base's values of all tensors that it has changed. They must not be changed by
/// others meanwhile, as by training. A frozen model notices a change of the model it was made of:
/// it is frozen again after activate(), or adapters are merged while it is loaded
/// (LoadOptions::adapters). The model must outlive nothing: the set holds it.
class AdapterSet {
 public:
  /// Of a model from load_encoder(), load_classifier(), load_decoder() or load_seq2seq().
  explicit AdapterSet(const Encoder& model);
  /// The same.
  explicit AdapterSet(const Classifier& model);
  /// The same.
  explicit AdapterSet(const Decoder& model);
  /// The same; matrices of the vocabulary have no adapters.
  explicit AdapterSet(const Seq2SeqModel& model);

  /// Adds an adapter. Nothing of the model changes.
  ///
  /// Errors: those that load_encoder() has for it; c10::ValueError for a name that is taken, for a
  /// table of tokens to which an output layer is tied, and for a head that the model has not.
  void add(const std::string& name, const LoraAdapter& adapter);
  /// Makes the weights those of the base with these adapters, whatever was active before; `scales`
  /// multiply what each adds, 1 unless given. None is deactivate().
  ///
  /// Errors: c10::ValueError for a name that is not in the set, for other numbers of scales, and
  /// for adapters that cannot be added to one another, as in LoadOptions::adapters.
  void activate(const std::vector<std::string>& names, const std::vector<double>& scales = {});
  /// Makes the weights those of the base, bit for bit.
  void deactivate() { activate({}); }

  /// The names of all, sorted.
  std::vector<std::string> names() const;
  /// Those that are active.
  const std::vector<std::string>& active() const;

 private:
  std::shared_ptr<lora::AdapterSetState> state_;
};

/// An adapter that is trained on a model, whose own weights do not change. It ends with the last
/// copy of this handle: the model is then what it was, without the adapter.
class LoraTraining {
 public:
  /// All tensors that are trained: A and B of each target, magnitudes, modules_to_save and biases.
  std::vector<torch::Tensor> parameters() const;
  /// The same with the names that PEFT has for them, without `base_model.model` in front. Rows of a
  /// tensor that posenc has as one with others, such as a query's bias, are not apart.
  StateDict named_parameters() const;
  /// The model, as `base`, and the adapter as one module, for Trainer and save_checkpoint(), whose
  /// files then have the weights of both. It is in eval mode if the model is.
  const std::shared_ptr<torch::nn::Module>& module() const;
  /// What has been trained.
  LoraAdapter adapter() const;

 private:
  friend struct lora::LoraTrainingState;
  explicit LoraTraining(std::shared_ptr<lora::LoraTrainingState> state)
      : state_(std::move(state)) {}
  std::shared_ptr<lora::LoraTrainingState> state_;
};

/// Adds an adapter to a model for training: y = base(x) + s B A drop(x), where A begins uniform in
/// +-sqrt(3 / in) / sqrt(3), B zero and a magnitude as the norms of W's rows. Only what
/// LoraTraining::parameters() returns requires gradients.
///
/// ```
/// auto model = posenc::load_classifier("models/bert-base-uncased");
/// auto tuned = posenc::add_lora(model, posenc::LoraConfig(8).targets({"query", "value"}));
/// torch::optim::AdamW optimizer(tuned.parameters());  // train
/// posenc::save_adapter(tuned.adapter(), "adapters/mine", "bert-base-uncased");
/// ```
///
/// `from`, if it is given, are the values to begin with. Errors: c10::ValueError for targets that
/// match nothing, or what posenc cannot train: tables, lora_bias, and layers of convolutions and of
/// windows; WeightsError for tensors in `from` that the model has not.
LoraTraining add_lora(const Encoder& model, const LoraConfig& config,
                      const LoraAdapter* from = nullptr);
/// The same.
LoraTraining add_lora(const Classifier& model, const LoraConfig& config,
                      const LoraAdapter* from = nullptr);
/// The same.
LoraTraining add_lora(const Decoder& model, const LoraConfig& config,
                      const LoraAdapter* from = nullptr);
/// The same.
LoraTraining add_lora(const Seq2SeqModel& model, const LoraConfig& config,
                      const LoraAdapter* from = nullptr);

}  // namespace posenc

#include <c10/util/Exception.h>

#include <memory>
#include <utility>

#include "models/frozen/frozen_folder.h"
#include "models/seq2seq/generation_config.h"
#include "posenc/base/error.h"
#include "posenc/inference/encoded_sources.h"
#include "speech/speech_recognizer.h"

namespace posenc {
namespace speech {
namespace {

class OfSources : public EncodedWindows {
 public:
  explicit OfSources(EncodedSources sources) : sources_(std::move(sources)) {}
  std::vector<std::vector<Hypothesis>> generate(const Indices& windows,
                                                const GenerateOptions& options) const override {
    return sources_.select(windows).generate(options);
  }
  at::Tensor next_logits(const Indices& windows,
                         const std::vector<Tokens>& targets) const override {
    return sources_.select(windows).next_logits(targets);
  }
  std::vector<at::Tensor> attention(const Indices& windows, const std::vector<Tokens>& targets,
                                    const std::vector<LayerHead>& heads) const override {
    return sources_.select(windows).attention(targets, heads);
  }

 private:
  EncodedSources sources_;
};

// What `read` returns, or nothing, and why. Other parts of a folder may do without it.
template <typename Read>
auto value_or_reason(const Read& read, std::string& reason) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  } catch (const Error& error) {
    reason = error.what();
  }
  return std::nullopt;
}

// The parts but the model, for one with these options.
RecognizerParts parts_of(const std::string& folder, const TransformerOptions& model) {
  const Settings file("SpeechRecognizer", folder + "/config.json");
  const auto& features = model.src_features();
  TORCH_CHECK_VALUE(features, file.where(), "the model must be one of speech. Got model_type ",
                    file.text("model_type", ""));
  const Settings config = file.of(file.text("model_type"));
  RecognizerParts parts = {.config = config, .generation = generation_settings(folder, file)};
  parts.sizes = {.vocab = model.tgt_vocab(),
                 .bins = features->num_mel_bins(),
                 .max_target_positions = model.max_len(),
                 .decoder_layers = model.num_decoder_layers(),
                 .decoder_heads = model.decoder_num_heads().value_or(model.num_heads())};
  parts.model.window = features->num_frames();
  parts.tokenizer =
      value_or_reason([&] { return Tokenizer::from_folder(folder); }, parts.no_tokenizer);
  parts.extractor = value_or_reason(
      [&] { return WhisperFeatureExtractor(log_mel_options_from_hf(folder)); }, parts.no_extractor);
  if (parts.extractor && parts.extractor->options().feature_size() != parts.sizes.bins)
    config.refuse("num_mel_bins", "must be feature_size of the feature extractor, " +
                                      std::to_string(parts.extractor->options().feature_size()));
  return parts;
}

template <typename Model>
void set_model(RecognizerParts& parts, const Model& model) {
  parts.model.encode = [model](const at::Tensor& features) {
    return std::make_unique<OfSources>(encode_sources(model, features));
  };
}

}  // namespace
}  // namespace speech

SpeechRecognizer load_speech_recognizer(const std::string& folder, const FreezeOptions& options,
                                        const LoadOptions& load) {
  const FrozenSeq2Seq loaded = load_and_freeze_seq2seq(folder, options, load);
  auto parts = speech::parts_of(folder, loaded.model.options());
  speech::set_model(parts, loaded.model);
  parts.frozen = loaded.model;
  return SpeechRecognizer(std::make_shared<const speech::RecognizerParts>(std::move(parts)));
}

SpeechRecognizer load_speech_recognizer(const std::string& folder, const Transformer& model) {
  TORCH_CHECK_VALUE(!model.is_empty(),
                    "[load_speech_recognizer] model must not be an empty holder");
  auto parts = speech::parts_of(folder, model->options);
  speech::set_model(parts, model);
  return SpeechRecognizer(std::make_shared<const speech::RecognizerParts>(std::move(parts)));
}

}  // namespace posenc

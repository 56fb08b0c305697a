#include <c10/util/Exception.h>

#include <memory>
#include <utility>

#include "models/frozen/frozen_folder.h"
#include "models/seq2seq/generation_config.h"
#include "posenc/inference/encoded_sources.h"
#include "speech/speech_recognizer.h"

namespace posenc {
namespace speech {
namespace {

constexpr const char* kLoad = "load_speech_recognizer";

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
    return std::nullopt;
  }
}

SpeechModel model_of(const FrozenTransformer& frozen, const Settings& config) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t median = config.integer("median_filter_width", 7, 1, kMost);
  if (median % 2 == 0) config.refuse("median_filter_width", "must be odd");
  const auto encode = [frozen](const at::Tensor& features) {
    return std::make_unique<OfSources>(encode_sources(frozen, features));
  };
  return {encode, 2 * config.integer("max_source_positions", 1500, 1, kMost), median};
}

ModelSizes sizes_of(const Settings& config) {
  constexpr int64_t kMost = 1 << 30;
  const auto size = [&](const char* name, int64_t fallback) {
    return config.integer(name, fallback, 1, kMost);
  };
  return {.vocab = size("vocab_size", 51865),
          .bins = size("num_mel_bins", 80),
          .max_target_positions = size("max_target_positions", 448),
          .decoder_layers = size("decoder_layers", 4),
          .decoder_heads = size("decoder_attention_heads", 6)};
}

void check_type(const Settings& config) {
  constexpr const char* kType = "whisper";
  if (config.text("model_type", "") != kType)
    config.refuse("model_type",
                  std::string("must be ") + kType + ", the only one that posenc has for speech");
}

}  // namespace
}  // namespace speech

SpeechRecognizer load_speech_recognizer(const std::string& folder, const FreezeOptions& options,
                                        const LoadOptions& load) {
  using namespace speech;
  check_type(Settings(kLoad, folder + "/config.json"));
  FrozenSeq2Seq loaded = load_and_freeze_seq2seq(folder, options, load);
  const Settings config = loaded.config.of(loaded.model_type);
  RecognizerParts parts = {loaded.model, model_of(loaded.model, config), sizes_of(config), config,
                           generation_settings(folder, loaded.config)};
  parts.tokenizer =
      value_or_reason([&] { return Tokenizer::from_folder(folder); }, parts.no_tokenizer);
  parts.extractor = value_or_reason(
      [&] { return WhisperFeatureExtractor(log_mel_options_from_hf(folder)); }, parts.no_extractor);
  if (parts.extractor && parts.extractor->options().feature_size() != parts.sizes.bins)
    config.refuse("num_mel_bins", "must be feature_size of the feature extractor, " +
                                      std::to_string(parts.extractor->options().feature_size()));
  return SpeechRecognizer(std::make_shared<const RecognizerParts>(std::move(parts)));
}

}  // namespace posenc

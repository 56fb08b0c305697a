#include "posenc/models/seq2seq.h"

#include "models/seq2seq/generation_config.h"
#include "models/seq2seq/load.h"

namespace posenc {
namespace {

// The search ignores the defaults of the configuration's class.
Seq2SeqModel with_generation(const std::string& folder, Seq2SeqWeights weights) {
  auto generation = generate_options_or_error(generation_settings(folder, weights.config),
                                              weights.model->options.tgt_vocab());
  Seq2SeqOrigin origin = {folder, weights.config.object().dump(), generation_text(folder)};
  return {std::move(weights.model), std::move(generation), weights.pad,
          std::move(weights.model_type), std::move(origin)};
}

}  // namespace

Seq2SeqModel load_seq2seq(const std::string& folder, const LoadOptions& options) {
  return with_generation(folder, load_seq2seq_weights(folder, options));
}

}  // namespace posenc

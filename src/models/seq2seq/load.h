#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/config/described_module.h"
#include "models/config/settings.h"
#include "models/seq2seq/vocabulary.h"
#include "models/types/model_types.h"
#include "models/types/zero_biases.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"

namespace posenc {

/// A model from a folder whose settings of generate() have not been read.
struct Seq2SeqWeights {
  Transformer model{nullptr};  ///< in eval mode
  int64_t pad;
  std::string model_type;
  Settings config;  ///< all of config.json
};

/// Selects the names that begin with a prefix, without it; all if it is empty.
KeyMap selection_of(const std::string& prefix);

/// The row of a configuration's model type. Throws c10::ValueError for one that is no
/// encoder-decoder.
const hf::ModelType& seq2seq_type(const Settings& config);

/// The settings as the class of the model type has them. Throws c10::ValueError for null where the
/// class has none.
Settings seq2seq_settings(const Settings& config, const std::string& type);

/// The padding id of sources, and that of targets where sources are no tokens; -1 where these have
/// none. Throws c10::ValueError for one outside the vocabulary.
int64_t seq2seq_pad(const Settings& config, const std::string& type,
                    const TransformerOptions& options);

/// The biases of keys that the class has not, by the names that they would have in its files.
std::vector<AbsentBias> absent_biases(const Seq2SeqFamily& family,
                                      const TransformerOptions& options);

/// Rules that drop the layers of a file which a model with these options does not have. `source`
/// has its tensors by the names of the class with an output layer.
KeyMap seq2seq_later_layers(const Seq2SeqFamily& family, const TransformerOptions& options,
                            const io::TensorSource& source);

/// How the tensors of a file become those of a model with these options.
LoadOptions seq2seq_load_options(const Seq2SeqFamily& family, const TransformerOptions& options,
                                 const Vocabulary& source);

/// The plan to load such a model, which `config` describes, from a file in `folder`.
std::unique_ptr<io::LoadPlan> seq2seq_plan(const char* caller, const std::string& folder,
                                           const Settings& config,
                                           const Seq2SeqStructure& structure,
                                           const TransformerOptions& options,
                                           const Vocabulary& source, const LoadOptions& load);

/// A Transformer in eval mode, and the plan by which it was loaded.
struct PlannedTransformer {
  Transformer model;
  std::unique_ptr<io::LoadPlan> plan;
};

/// Loads it with these options, but for their tie(), which is that of the file at `path` in
/// `folder`. `renamed` has its tensors by the names of the class with an output layer.
PlannedTransformer planned_transformer(const char* caller, const std::string& folder,
                                       const std::string& path, const Settings& config,
                                       const Seq2SeqStructure& structure,
                                       TransformerOptions options, const VocabularyNames& names,
                                       const io::TensorSource& renamed);

/// Loads them. Throws as load_seq2seq().
Seq2SeqWeights load_seq2seq_weights(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc

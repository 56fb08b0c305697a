#pragma once

#include <cstdint>
#include <string>

#include "models/settings.h"
#include "posenc/io/load.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// A model from a folder whose settings of generate() have not been read.
struct Seq2SeqWeights {
  Transformer model{nullptr};  ///< in eval mode
  int64_t pad;
  std::string model_type;
  Settings config;  ///< all of config.json
};

/// Loads them. `caller` is the public function in messages; `only` the one model type that it
/// takes, or empty. Throws as load_seq2seq().
Seq2SeqWeights load_seq2seq_weights(const char* caller, const std::string& folder,
                                    const LoadOptions& options = {}, const std::string& only = "");

}  // namespace posenc

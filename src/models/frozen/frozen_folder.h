#pragma once

#include <cstdint>
#include <string>

#include "models/config/settings.h"
#include "posenc/models/frozen_file.h"

namespace posenc {

/// Seq2SeqWeights with a frozen model.
struct FrozenSeq2Seq {
  FrozenTransformer model;
  int64_t pad;
  std::string model_type;
  Settings config;
};

/// load_and_freeze_encoder() for an encoder-decoder.
FrozenSeq2Seq load_and_freeze_seq2seq(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load);

}  // namespace posenc

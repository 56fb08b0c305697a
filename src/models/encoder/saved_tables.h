#pragma once

#include "io/load/source.h"
#include "models/encoder/config.h"

namespace posenc {

/// Reads what a file has of a rotary embedding: its frequencies replace those of the layers, and a
/// table must be the one that the layers compute. Throws WeightsError for others.
void read_saved_tables(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix, EncoderImpl& model);

}  // namespace posenc

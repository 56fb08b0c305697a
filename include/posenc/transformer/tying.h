#pragma once

#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Which of a Transformer's three vocabulary matrices share one weight: the source embedding, the
/// target embedding and the output layer, whose bias is always its own.
enum class Tying {
  None,            ///< three separate weights
  EncoderDecoder,  ///< both embeddings share a weight; the vocabularies must be equal
  DecoderOutput,   ///< the target embedding and the output layer share a weight
  ThreeWay,        ///< all three share a weight; the vocabularies must be equal
};

/// Returns the value named `none`, `encoder_decoder`, `decoder_output` or `three_way`.
///
/// Errors: c10::ValueError for any other name.
Tying tying_of(const std::string& name);
/// Returns the name that tying_of() takes.
std::string to_string(Tying tying);

}  // namespace posenc

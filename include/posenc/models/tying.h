#pragma once

#include <string>

namespace posenc {

/// Which of a Transformer's three vocabulary matrices are one: of the source's embedding, of the
/// target's, and of the output layer (whose bias stays its own). Notebook 03, section 5.
enum class Tying {
  None,            ///< three matrices
  EncoderDecoder,  ///< both embeddings are one; needs one vocabulary
  DecoderOutput,   ///< the target's embedding is the output's weight
  ThreeWay,        ///< all three are one; needs one vocabulary
};

/// The way called `none`, `encoder_decoder`, `decoder_output` or `three_way`; c10::ValueError for
/// another name.
Tying tying_of(const std::string& name);
/// The name of a way, as above.
std::string name_of(Tying tying);

}  // namespace posenc

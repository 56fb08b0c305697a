#include "posenc/transformer/tying.h"

#include <c10/util/Exception.h>

#include <utility>

namespace posenc {
namespace {

const std::pair<const char*, Tying> kTyings[] = {{"none", Tying::None},
                                                 {"encoder_decoder", Tying::EncoderDecoder},
                                                 {"decoder_output", Tying::DecoderOutput},
                                                 {"three_way", Tying::ThreeWay}};

}  // namespace

Tying tying_of(const std::string& name) {
  for (const auto& [known, tying] : kTyings) {
    if (name == known) return tying;
  }
  TORCH_CHECK_VALUE(
      false, "[Tying] must be none, encoder_decoder, decoder_output or three_way. Got ", name);
}

std::string to_string(Tying tying) {
  for (const auto& [name, known] : kTyings) {
    if (tying == known) return name;
  }
  TORCH_CHECK_VALUE(false, "[Tying] must be one of the four ways. Got ", static_cast<int>(tying));
}

}  // namespace posenc

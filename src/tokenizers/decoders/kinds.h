#pragma once

#include <memory>

#include "tokenizers/decoders/decoder.h"
#include "tokenizers/definition/component.h"

/// Each makes the decoder of one class. All throw TokenizerError for fields that are missing or
/// wrong.
namespace posenc::text {

using DecoderPointer = std::unique_ptr<const Decoder>;

DecoderPointer make_bpe_decoder(const Component& component);
DecoderPointer make_byte_fallback_decoder();
DecoderPointer make_byte_level_decoder(const Component& component);
DecoderPointer make_ctc_decoder(const Component& component);
DecoderPointer make_metaspace_decoder(const Component& component);
DecoderPointer make_replace_decoder(const Component& component);
DecoderPointer make_strip_decoder(const Component& component);
DecoderPointer make_word_piece_decoder(const Component& component);

}  // namespace posenc::text

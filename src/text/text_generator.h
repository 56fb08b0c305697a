#pragma once

#include "models/seq2seq/generation_config.h"
#include "posenc/text/text_generator.h"

namespace posenc::text {

/// The options that settings of generate() mean for a model with a vocabulary of `vocab` tokens,
/// `stop_strings` included. Throws as `make` does, which is generate_options() or
/// generate_options_or_error().
TextGenerateOptions text_generate_options(Settings settings, int64_t vocab,
                                          decltype(generate_options)& make = generate_options);

}  // namespace posenc::text

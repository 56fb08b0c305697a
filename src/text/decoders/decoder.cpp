#include "text/decoders/decoder.h"
namespace posenc::text { std::unique_ptr<const Decoder> make_decoder(const nlohmann::json&) { return nullptr; } }

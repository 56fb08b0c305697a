#include "text/decoders/decoder.h"

#include <algorithm>
#include <initializer_list>

#include "text/decoders/kinds.h"

namespace posenc::text {
namespace {

class Fuse : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += token;
    tokens.assign(1, std::move(text));
  }
};

class DecoderSequence : public Decoder {
 public:
  explicit DecoderSequence(const Component& component) {
    for (const auto& step : component.array("decoders")) {
      if (step.is_null()) component.refuse("decoders", "an array of objects");
      steps_.push_back(make_decoder(step));
    }
  }
  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->decode(tokens);
  }

 private:
  std::vector<DecoderPointer> steps_;
};

// Files of old had no `type` where the fields tell the class.
std::string decoder_type(const nlohmann::json& object) {
  const Component component("decoder", object);
  const auto has = [&](std::initializer_list<const char*> fields) {
    return std::all_of(fields.begin(), fields.end(),
                       [&](const char* field) { return component.has(field); });
  };
  if (component.has("type")) return component.string("type");
  if (has({"suffix"})) return "BPEDecoder";
  if (has({"prefix", "cleanup"})) return "WordPiece";
  if (has({"pad_token", "word_delimiter_token", "cleanup"})) return "CTC";
  if (has({"content", "start", "stop"})) return "Strip";
  return component.string("type");
}

}  // namespace

DecoderPointer make_decoder(const nlohmann::json& object) {
  if (object.is_null()) return nullptr;
  const std::string type = decoder_type(object);
  const Component component("decoder " + type, object);
  if (type == "BPEDecoder") return make_bpe_decoder(component);
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "ByteLevel") return make_byte_level_decoder(component);
  if (type == "CTC") return make_ctc_decoder(component);
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Metaspace") return make_metaspace_decoder(component);
  if (type == "Replace") return make_replace_decoder(component);
  if (type == "Sequence") return std::make_unique<DecoderSequence>(component);
  if (type == "Strip") return make_strip_decoder(component);
  if (type == "WordPiece") return make_word_piece_decoder(component);
  Component("decoder", object).refuse("type", "a decoder of tokenizers 0.23");
}

}  // namespace posenc::text

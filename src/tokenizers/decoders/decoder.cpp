#include "tokenizers/decoders/decoder.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tokenizers/decoders/kinds.h"

namespace posenc::text {
namespace {

class Fuse : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += token;
    tokens.assign(1, std::move(text));
  }
  bool keeps_replacement() const override { return true; }
};

// The end after steps that change each token by itself, and a decoder that knows its end.
class EndAfterSteps : public DecodedEnd {
 public:
  using Steps = std::vector<const Decoder*>;

  EndAfterSteps(Steps steps, std::unique_ptr<DecodedEnd> end)
      : steps_(std::move(steps)), end_(std::move(end)) {}

  void add(std::string_view token) override {
    std::vector<std::string> changed = {std::string(token)};
    for (const Decoder* step : steps_) step->decode(changed);
    for (const std::string& each : changed) end_->add(each);
  }
  bool is_replacement() const override { return end_->is_replacement(); }

 private:
  Steps steps_;
  std::unique_ptr<DecodedEnd> end_;
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
  std::unique_ptr<DecodedEnd> follow_end() const override {
    EndAfterSteps::Steps before;
    auto step = steps_.begin();
    for (; step != steps_.end() && (*step)->is_for_each_token(); ++step)
      before.push_back(step->get());
    if (step == steps_.end()) return nullptr;
    auto end = (*step)->follow_end();
    const bool is_kept = std::all_of(step + 1, steps_.end(), [](const DecoderPointer& later) {
      return later->keeps_replacement();
    });
    if (!end || !is_kept) return nullptr;
    return std::make_unique<EndAfterSteps>(std::move(before), std::move(end));
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

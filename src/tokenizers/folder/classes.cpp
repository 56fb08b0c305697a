#include "tokenizers/folder/classes.h"

#include <algorithm>
#include <map>

#include "tokenizers/folder/folder_model.h"

namespace posenc::text {
namespace {

using Json = nlohmann::json;

struct ClassRow {
  std::string_view name, json;
};
constexpr ClassRow kClassRows[] = {
#include "tokenizers/folder/class_rows.inc"
};

const ClassRow* row_named(std::string_view name) {
  const auto* const found = std::ranges::find(kClassRows, name, &ClassRow::name);
  return found == std::end(kClassRows) ? nullptr : found;
}

ModelDefinition::Kind kind_named(const std::string& name) {
  using Kind = ModelDefinition::Kind;
  return name == "WordPiece" ? Kind::WordPiece : name == "BPE" ? Kind::Bpe : Kind::Unigram;
}

// Reads a row: tools/tokenizer_rows.py says what it has.
class RowReader {
 public:
  RowReader(ClassBuilder& builder, const Json& row) : builder_(builder), row_(row) {}

  /// What comes before the constructor of TokenizersBackend.
  void begin() {
    builder_.settings.pads_left = row_.contains("pads_left");
    if (row_.contains("inputs")) {
      builder_.settings.model_input_names = row_["inputs"].get<std::vector<std::string>>();
    }
    if (row_.contains("max_length"))
      builder_.arguments.set_default("model_max_length", row_["max_length"].get<int64_t>());
    const bool makes_model = begin_model();
    for (const Json& token : row_.value("tokens", Json::array())) name_token(token);
    if (makes_model) make_components();
    if (row_.contains("extra")) set_extra(row_["extra"].get<std::vector<std::string>>());
    if (row_.contains("is_early")) builder_.definition.post_processor = kEarly;
  }

  /// What comes after it.
  void end() {
    if (row_.contains("post_processor") &&
        (!row_.contains("is_early") || builder_.definition.post_processor == kEarly))
      set_post_processor(row_["post_processor"]);
    for (const Json& call : row_.value("calls", Json::array())) {
      if (call == "post_init") builder_.post_init();
      if (call == "update_post_processor") builder_.update_post_processor();
      if (call == "restore_flags") builder_.restore_flags();
    }
  }

 private:
  // Whether the class makes the model and its components itself.
  bool begin_model() {
    std::vector<std::string> names = row_.value("files", std::vector<std::string>());
    names.resize(2);
    const auto name = [&](std::size_t i) { return names[i].empty() ? nullptr : names[i].c_str(); };
    const VocabularyFiles files = {name(0), name(1)};
    const ModelDefinition::Kind kind = kind_named(row_["model"]["type"].get<std::string>());
    if (row_.contains("of_file") && (builder_.has_file() || names[0].ends_with(".model"))) {
      take_file_or_sentencepiece(builder_, files, kind);
      return false;
    }
    builder_.begin_model(kind, files);
    return true;
  }

  void name_token(const Json& token) {
    const auto name = token[0].get<std::string>();
    const auto otherwise = token[1].is_null() ? std::string() : token[1].get<std::string>();
    if (token.size() < 3) {
      builder_.named(name.c_str(), token[1].is_null() ? nullptr : otherwise.c_str());
      return;
    }
    const Json& flags = token[2];
    std::optional<bool> normalized;
    if (flags.contains("normalized")) normalized = flags["normalized"].get<bool>();
    builder_.flagged(name.c_str(), otherwise.c_str(), flags["lstrip"], normalized,
                     flags["special"]);
  }

  void make_components() {
    if (row_.contains("arguments")) {  // each is checked, also one that nothing follows this time
      for (const auto& argument : row_["arguments"].items()) value_of(argument.key());
    }
    Definition& definition = builder_.definition;
    ModelDefinition& model = definition.model;
    const auto take = [&](const char* part, Json& made) {
      if (row_.contains(part)) fill(row_[part], made);
    };
    take("normalizer", definition.normalizer);
    take("pre_tokenizer", definition.pre_tokenizer);
    take("decoder", definition.decoder);
    Json options;
    fill(row_["model"], options);
    if (options.contains("unk_token")) model.unk_token = options["unk_token"].get<std::string>();
    if (options.contains("unk_id")) model.unk_id = options["unk_id"].get<uint64_t>();
    model.continuing_subword_prefix = options.value("continuing_subword_prefix", "");
    model.end_of_word_suffix = options.value("end_of_word_suffix", "");
    model.fuse_unk = options.value("fuse_unk", false);
    model.byte_fallback = options.value("byte_fallback", false);
  }

  void set_extra(const std::vector<std::string>& otherwise) {
    std::vector<GivenToken> tokens(otherwise.begin(), otherwise.end());
    builder_.set_extra(builder_.arguments.tokens("additional_special_tokens").value_or(tokens));
  }

  // The value of a hole.
  Json value_of(const std::string& name) const {
    const Arguments& arguments = builder_.arguments;
    if (name == "charsmap") return builder_.charsmap() ? Json(*builder_.charsmap()) : Json();
    if (name.ends_with("_token")) return builder_.passed_text(name.c_str());
    const Json& otherwise = row_["arguments"][name];
    if (otherwise.is_boolean()) return arguments.flag(name.c_str(), otherwise);
    if (otherwise.is_string()) return arguments.text(name.c_str(), otherwise);
    if (otherwise.is_number()) return arguments.number(name.c_str(), otherwise);
    const std::optional<bool> given = arguments.optional_flag(name.c_str());
    if (otherwise.is_array()) return given.value_or(otherwise[0].get<bool>());
    return given ? Json(*given) : Json();
  }

  // Writes a part of the row to `made`, with what its holes stand for. Returns false for nothing.
  bool fill(const Json& part, Json& made) const {
    if (part.is_string()) {
      const auto text = part.get<std::string>();
      made = text.starts_with('$') ? value_of(text.substr(1)) : part;
    } else if (part.is_array()) {
      made = Json::array();
      for (const Json& each : part) {
        Json element;
        if (fill(each, element)) made.push_back(std::move(element));
      }
    } else if (part.is_object() && part.contains("if")) {
      const Json value = value_of(part["if"].get<std::string>());
      const char* const side = value.is_null() || value == false ? "else" : "then";
      return part.contains(side) && fill(part[side], made);
    } else if (part.is_object()) {
      made = Json::object();
      for (const auto& [name, member] : part.items()) fill(member, made[name]);
    } else {
      made = part;
    }
    return true;
  }

  // A special token of the post-processor: its text, the token whose id it has, and where that may
  // be none, the id that stands for it.
  ClassBuilder::TokenId special(const Json& entry) {
    const auto name = entry[1].get<std::string>();
    const bool may_be_none = entry.size() > 2 && !entry[2].is_array();
    const std::string token =
        may_be_none ? builder_.text_or_none(name.c_str()) : builder_.named_text(name.c_str());
    texts_["{" + name + "}"] = token;
    const std::string text =
        entry[0].get<std::string>().starts_with('{') ? token : entry[0].get<std::string>();
    if (entry.size() < 3 || entry[2].is_null()) return {text, builder_.required_id(token)};
    if (entry[2].is_array()) return {text, entry[2][0].get<uint64_t>()};
    return {text, builder_.named_id(name.c_str(), entry[2].get<uint64_t>())};
  }

  Template pieces(const Json& written) const {
    if (written.is_string()) return pieces_of(without_holes(written.get<std::string>()));
    Template made;
    for (const Json& piece : written) made.push_back(without_holes(piece.get<std::string>()));
    return made;
  }
  std::string without_holes(const std::string& text) const {
    std::string made;
    for (std::size_t at = 0, end; at < text.size(); at = end) {
      end = text[at] == '{' ? text.find('}', at) + 1 : at + 1;
      const std::string part = text.substr(at, end - at);
      made += part.size() > 1 ? texts_.at(part) : part;
    }
    return made;
  }

  void set_post_processor(const Json& part) {
    if (part["type"] == "TemplateProcessing") {
      std::vector<ClassBuilder::TokenId> specials;
      for (const Json& entry : part["specials"]) specials.push_back(special(entry));
      builder_.set_template_with_ids(pieces(part["single"]), pieces(part["pair"]), specials);
      return;
    }
    Json made;
    fill(part, made);
    for (const char* side : {"sep", "cls"}) {
      if (!part.contains(side)) continue;
      const auto [text, id] = special(part[side]);
      made[side] = Json::array({text, id});
    }
    builder_.definition.post_processor = std::move(made);
  }

  // Where that of a file counts.
  inline static const Json kEarly = {{"type", "TemplateProcessing"}};

  ClassBuilder& builder_;
  const Json& row_;
  std::map<std::string, std::string> texts_;  // of holes in templates
};

}  // namespace

bool has_constructor(std::string_view name) {
  return name == "TokenizersBackend" || name == "ParakeetTokenizer" || name == "EsmcTokenizer" ||
         row_named(name) != nullptr;
}

void construct(ClassBuilder& builder) {
  const std::string& name = builder.settings.tokenizer_class;
  if (name == "EsmcTokenizer") return construct_esmc(builder);
  builder.settings.decodes_runs_once = name == "LasrTokenizer" || name == "ParakeetTokenizer";
  const ClassRow* const text = row_named(name);
  if (text == nullptr) {
    take_file_or_sentencepiece(builder, {"tokenizer.model"});
    return builder.finish();
  }
  const Json row = Json::parse(text->json);
  const auto& exceptions = class_exceptions();
  const auto found = std::ranges::find(exceptions, name, &ClassExceptions::name);
  const ClassExceptions own = found == exceptions.end() ? ClassExceptions{} : *found;
  RowReader reader(builder, row);
  reader.begin();
  if (own.before != nullptr) own.before(builder);
  builder.finish();
  reader.end();
  if (own.after != nullptr) own.after(builder);
}

}  // namespace posenc::text

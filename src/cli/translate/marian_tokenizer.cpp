#include "cli/translate/marian_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "cli/error.h"
#include "models/marian/settings.h"

namespace posenc::cli {
namespace {

const std::string kSpaceMark = "\u2581";  // SentencePiece's space

std::string in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

void load_pieces(sentencepiece::SentencePieceProcessor& pieces, const std::string& path) {
  if (const auto status = pieces.Load(path); !status.ok()) {
    refuse("{}: must be a SentencePiece model. {}", path, status.ToString());
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// What Python's str.strip() takes away.
constexpr std::string_view kSpaces[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",
                                        "\x1c",   "\x1d",   "\x1e",   "\x1f",   "\u0085", "\u00a0",
                                        "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                        "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                        "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

std::string_view stripped(std::string_view text) {
  const auto strip_one = [&] {
    for (const auto space : kSpaces) {
      if (text.starts_with(space)) return text.remove_prefix(space.size()), true;
      if (text.ends_with(space)) return text.remove_suffix(space.size()), true;
    }
    return false;
  };
  while (strip_one()) {
  }
  return text;
}

// clean_up_tokenization() of transformers.
void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> kSteps[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kSteps) replace_all(text, from, to);
}

}  // namespace

MarianTokenizer::MarianTokenizer(const std::string& folder) : source_(in(folder, "vocab.json")) {
  load_pieces(source_pieces_, in(folder, "source.spm"));
  load_pieces(target_pieces_, in(folder, "target.spm"));
  read_configuration(folder);
}

void MarianTokenizer::read_configuration(const std::string& folder) {
  const std::string path = in(folder, "tokenizer_config.json");
  const Settings settings = std::filesystem::exists(path) ? Settings(path) : Settings::none(path);
  if (settings.flag("separate_vocabs", false)) {
    target_ = std::make_unique<Vocabulary>(in(folder, "target_vocab.json"));
  }
  cleans_up_ = settings.flag("clean_up_tokenization_spaces", false);
  const auto special = [&](const char* name, const char* fallback) {
    const auto& value = settings.value(name);  // a text, or an object that describes the token
    const auto& content = value.is_object() ? value.value("content", nlohmann::json()) : value;
    if (!content.is_null() && !content.is_string()) settings.refuse(name, "must be a token");
    return content.is_null() ? std::string(fallback) : content.get<std::string>();
  };
  const auto add = [&](const std::string& token) {
    const auto id = source_.id(token);
    if (id && !token.empty()) specials_.push_back({token, *id});
    return id;
  };
  const auto needed = [&](const std::string& token) {
    const auto id = add(token);
    if (!id) refuse("{}: must have the token {}", in(folder, "vocab.json"), token);
    return *id;
  };
  end_ = needed(special("eos_token", "</s>"));
  unknown_ = needed(special("unk_token", "<unk>"));
  add(special("pad_token", "<pad>"));
}

int64_t MarianTokenizer::id_of(const std::string& token) const {
  return source_.id(token).value_or(unknown_);
}

void MarianTokenizer::encode_plain(std::string_view text, std::vector<int64_t>& ids) const {
  if (const auto end = text.find("<<"); text.starts_with(">>") && end != std::string_view::npos) {
    ids.push_back(id_of(std::string(text.substr(0, end + 2))));
    text.remove_prefix(end + 2);
  }
  std::vector<std::string> pieces;
  if (const auto status = source_pieces_.Encode(text, &pieces); !status.ok()) {
    refuse("SentencePiece: {}", status.ToString());
  }
  for (const auto& piece : pieces) ids.push_back(id_of(piece));
}

std::vector<int64_t> MarianTokenizer::encode(std::string_view line) const {
  std::vector<int64_t> ids;
  std::size_t begin = 0;  // of the text that is not encoded yet
  for (std::size_t at = 0; at < line.size();) {
    const Special* longest = nullptr;
    for (const auto& one : specials_) {
      if (line.substr(at).starts_with(one.text) &&
          (longest == nullptr || one.text.size() > longest->text.size())) {
        longest = &one;
      }
    }
    if (longest == nullptr) {
      ++at;
      continue;
    }
    if (at > begin) encode_plain(line.substr(begin, at - begin), ids);
    ids.push_back(longest->id);
    begin = at += longest->text.size();
  }
  if (begin < line.size()) encode_plain(line.substr(begin), ids);
  ids.push_back(end_);
  return ids;
}

std::string MarianTokenizer::token_of(int64_t id) const {
  const std::string* token = (target_ ? *target_ : source_).token(id);
  if (token != nullptr) return *token;
  // MarianTokenizer asks SentencePiece then, which numbers its pieces by itself.
  return id < target_pieces_.GetPieceSize() ? target_pieces_.IdToPiece(static_cast<int>(id)) : "";
}

std::string MarianTokenizer::decode(const std::vector<int64_t>& ids) const {
  std::vector<std::string> pieces;
  for (const int64_t id : ids) {
    const bool is_special = std::any_of(specials_.begin(), specials_.end(),
                                        [&](const Special& one) { return one.id == id; });
    if (!is_special) pieces.push_back(token_of(id));
  }
  std::string text;
  if (const auto status = target_pieces_.Decode(pieces, &text); !status.ok()) {
    refuse("SentencePiece: {}", status.ToString());
  }
  replace_all(text, kSpaceMark, " ");
  text = stripped(text);
  if (cleans_up_) clean_up(text);
  for (char& byte : text) {  // a translation is one line
    if (byte == '\n' || byte == '\r') byte = ' ';
  }
  return text;
}

}  // namespace posenc::cli

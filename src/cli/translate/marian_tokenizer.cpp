#include "cli/translate/marian_tokenizer.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "cli/error.h"
#include "cli/translate/spaces.h"
#include "cli/translate/tokenizer_settings.h"
#include "io/base/file.h"
#include "io/base/text.h"

namespace posenc::cli {
namespace {

constexpr uint64_t kLongestPieces = 256'000'000;  // in bytes
const std::string kSpaceMark = "\u2581";          // SentencePiece's mark for a space

std::string in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

// Reads the file here, because SentencePiece's Load() would read a device forever, and its errors
// do not name the file.
void load_pieces(sentencepiece::SentencePieceProcessor& pieces, const std::string& path) {
  const io::InputFile file(path);
  if (file.size() > kLongestPieces) {
    fail("{}: must have at most {} bytes. Got {}", path, kLongestPieces, file.size());
  }
  const auto status = pieces.LoadFromSerializedProto(file.read(0, file.size()));
  if (!status.ok()) {
    fail("{}: must be a SentencePiece model. {}", path, status.ToString());
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Implements clean_up_tokenization() of transformers.
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
  read_settings(folder);
}

void MarianTokenizer::read_settings(const std::string& folder) {
  auto settings = read_tokenizer_settings(folder);
  if (settings.has_two_vocabularies) {
    target_ = std::make_unique<Vocabulary>(in(folder, "target_vocab.json"));
  }
  cleans_up_ = settings.cleans_up;
  splits_specials_ = settings.splits_specials;
  std::unordered_map<std::string, int64_t> ids;
  for (const auto& [id, token] : settings.added) {
    const auto [place, is_new] = ids.emplace(token.text, id);
    if (!is_new) {
      fail("{}: must give the token {} one id. Got {} and {}", folder, io::in_quotes(token.text),
           place->second, id);
    }
  }
  const auto needed = [&](const std::string& token, bool may_be_added) {
    const auto added = ids.find(token);
    const auto own = source_.id(token);
    const bool is_there = own || (may_be_added && added != ids.end());
    if (!is_there) fail("{}: must have the token {}", in(folder, "vocab.json"), shown(token));
    return added == ids.end() ? *own : added->second;
  };
  end_ = needed(settings.end, /*may_be_added=*/true);
  unknown_ = needed(settings.unknown, /*may_be_added=*/false);  // as transformers requires
  // Tokens without an id get the next free ones.
  int64_t next = static_cast<int64_t>(source_.size());
  for (const auto& [token, id] : ids) next += source_.id(token) ? 0 : 1;
  for (const auto& token : settings.specials) {
    if (!ids.contains(token)) {
      const auto id = source_.id(token);
      ids.emplace(token, id ? *id : next);
      settings.added[id ? *id : next++] = {token};
    }
    special_ids_.insert(ids.at(token));
    special_texts_.insert(token);
  }
  added_ = AddedTokens(std::move(settings.added), std::move(ids));
}

int64_t MarianTokenizer::id_of(const std::string& token) const {
  const int64_t* added = added_.id(token);
  return added != nullptr ? *added : source_.id(token).value_or(unknown_);
}

void MarianTokenizer::encode_plain(std::string_view text, std::vector<int64_t>& ids) const {
  if (const auto end = text.find("<<"); text.starts_with(">>") && end != std::string_view::npos) {
    ids.push_back(id_of(std::string(text.substr(0, end + 2))));
    text.remove_prefix(end + 2);
  }
  std::vector<std::string> pieces;
  if (const auto status = source_pieces_.Encode(text, &pieces); !status.ok()) {
    fail("SentencePiece: {}", status.ToString());
  }
  for (const auto& piece : pieces) ids.push_back(id_of(piece));
}

std::vector<int64_t> MarianTokenizer::encode(std::string_view line) const {
  std::vector<int64_t> ids;
  if (splits_specials_) {
    encode_plain(line, ids);
  } else {
    for (const auto& part : added_.split(line)) {
      const int64_t* added = added_.id(part);
      if (added != nullptr) {
        ids.push_back(*added);
      } else {
        encode_plain(part, ids);
      }
    }
  }
  ids.push_back(end_);
  return ids;
}

std::string MarianTokenizer::token_of(int64_t id) const {
  if (const AddedToken* added = added_.find(id)) return added->text;
  const std::string* token = (target_ ? *target_ : source_).token(id);
  if (token != nullptr) return *token;
  // MarianTokenizer then asks SentencePiece, which numbers its pieces independently.
  const auto& pieces = output_pieces();
  return id < pieces.GetPieceSize() ? pieces.IdToPiece(static_cast<int>(id)) : "";
}

const sentencepiece::SentencePieceProcessor& MarianTokenizer::output_pieces() const {
  return target_ ? target_pieces_ : source_pieces_;
}

std::string MarianTokenizer::joined(const std::vector<std::string>& pieces) const {
  std::string text;
  if (const auto status = output_pieces().Decode(pieces, &text); !status.ok()) {
    fail("SentencePiece: {}", status.ToString());
  }
  return text;
}

std::string MarianTokenizer::decode(const std::vector<int64_t>& ids) const {
  std::string text;
  std::vector<std::string> pieces;
  for (const int64_t id : ids) {
    if (special_ids_.contains(id)) continue;
    auto token = token_of(id);
    // A special token under another id, as in a separate target vocabulary.
    if (special_texts_.contains(token)) {
      text += joined(pieces) + token + " ";
      pieces.clear();
    } else {
      pieces.push_back(std::move(token));
    }
  }
  text += joined(pieces);
  replace_all(text, kSpaceMark, " ");
  text = std::string(without_left_spaces(without_right_spaces(text)));
  if (cleans_up_) clean_up(text);
  for (char& byte : text) {  // a translation is one line
    if (byte == '\n' || byte == '\r') byte = ' ';
  }
  return text;
}

}  // namespace posenc::cli

#include "cli/pronounce/lexicon.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/error.h"
#include "train/shuffler.h"

namespace posenc::cli {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

Lexicon read_lexicon(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse("{}: {}", path, std::strerror(errno));
  std::map<std::string, std::vector<Phonemes>> words;
  Lexicon lexicon;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.rfind(";;;", 0) == 0) continue;
    std::istringstream parts(line.substr(0, line.find('#')));
    std::string word;
    if (!(parts >> word)) continue;
    word = lower(word.substr(0, word.find('(')));
    Phonemes phonemes;
    for (std::string phoneme; parts >> phoneme;) {
      while (phoneme.size() > 1 && std::isdigit(static_cast<unsigned char>(phoneme.back()))) {
        phoneme.pop_back();
      }
      phonemes.push_back(phoneme);
    }
    if (phonemes.empty()) refuse("{}:{}: a word must have phonemes. Got none", path, number);
    if (!std::all_of(word.begin(), word.end(), is_letter) || word.empty()) {
      ++lexicon.left_out;
      continue;
    }
    auto& known = words[word];  // without stress, two ways may be one
    if (std::find(known.begin(), known.end(), phonemes) == known.end()) known.push_back(phonemes);
  }
  if (file.bad()) refuse("{}: {}", path, std::strerror(errno));
  if (words.empty()) refuse("{}: a dictionary must have words of a-z. Got none", path);
  for (auto& [word, ways] : words) lexicon.entries.push_back({word, std::move(ways)});
  return lexicon;
}

Split hold_out(const Lexicon& lexicon, int64_t held_out, int64_t seed) {
  const auto count = static_cast<int64_t>(lexicon.entries.size());
  if (held_out < 1 || held_out >= count) {
    refuse("--held-out must lie in [1, {}), the number of words. Got {}", count, held_out);
  }
  auto shuffled = lexicon.entries;
  train::Shuffler{seed}(shuffled);
  Split split;
  split.held_out.assign(shuffled.begin(), shuffled.begin() + held_out);
  split.train.assign(shuffled.begin() + held_out, shuffled.end());
  return split;
}

}  // namespace posenc::cli

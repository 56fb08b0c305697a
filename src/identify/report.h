#pragma once

// What a search found, in words.

#include "identify/search.h"
#include "posenc/identify.h"

namespace posenc::identification {

Identification report(const SearchResult& found);

}  // namespace posenc::identification

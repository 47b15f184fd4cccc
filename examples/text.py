"""Cluster sentences of three books by their words.

TF-IDF vectors are sparse rows, one column per word; ``metric="cosine"`` ignores the
length of a sentence. Run it with the package installed: python examples/text.py
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK

# Public domain: 1787, 1865 and 1851. Some sentences are shortened.
CONSTITUTION = """
All legislative Powers herein granted shall be vested in a Congress of the United
  States, which shall consist of a Senate and House of Representatives.
The House of Representatives shall be composed of Members chosen every second Year by
  the People of the several States.
No Person shall be a Representative who shall not have attained to the Age of twenty
  five Years, and been seven Years a Citizen of the United States.
The House of Representatives shall chuse their Speaker and other Officers; and shall
  have the sole Power of Impeachment.
The Senate of the United States shall be composed of two Senators from each State, and
  each Senator shall have one Vote.
No Person shall be a Senator who shall not have attained to the Age of thirty Years,
  and been nine Years a Citizen of the United States.
The Vice President of the United States shall be President of the Senate, but shall
  have no Vote, unless they be equally divided.
The Senate shall have the sole Power to try all Impeachments.
The Congress shall assemble at least once in every Year.
Each House shall be the Judge of the Elections, Returns and Qualifications of its own
  Members.
Each House shall keep a Journal of its Proceedings, and from time to time publish the
  same.
The Senators and Representatives shall receive a Compensation for their Services, to
  be ascertained by Law, and paid out of the Treasury of the United States.
All Bills for raising Revenue shall originate in the House of Representatives; but the
  Senate may propose or concur with Amendments as on other Bills.
The Congress shall have Power to lay and collect Taxes, Duties, Imposts and Excises.
No State shall enter into any Treaty, Alliance, or Confederation.
The executive Power shall be vested in a President of the United States of America.
The President shall be Commander in Chief of the Army and Navy of the United States.
The judicial Power of the United States shall be vested in one supreme Court.
"""
ALICE = """
Alice was beginning to get very tired of sitting by her sister on the bank, and of
  having nothing to do.
Suddenly a White Rabbit with pink eyes ran close by her.
There was nothing so very remarkable in that; nor did Alice think it so very much out
  of the way to hear the Rabbit say to itself, Oh dear! I shall be late!
Alice was not a bit hurt, and she jumped up on to her feet in a moment.
The White Rabbit was still in sight, hurrying down it.
Alice opened the door and found that it led into a small passage, not much larger than
  a rat-hole.
Poor Alice! It was as much as she could do, lying down on one side, to look through
  into the garden with one eye.
The Caterpillar and Alice looked at each other for some time in silence.
Who are you? said the Caterpillar.
I can't explain myself, I'm afraid, sir, said Alice, because I'm not myself, you see.
The Cat only grinned when it saw Alice.
But I don't want to go among mad people, Alice remarked.
Oh, you can't help that, said the Cat: we're all mad here.
There was a table set out under a tree in front of the house, and the March Hare and
  the Hatter were having tea at it.
Have some wine, the March Hare said in an encouraging tone.
Alice looked all round the table, but there was nothing on it but tea.
Your hair wants cutting, said the Hatter.
Off with her head! the Queen said to Alice at the top of her voice.
"""
MOBY_DICK = """
Call me Ishmael.
Some years ago, having little or no money in my purse, I thought I would sail about a
  little and see the watery part of the world.
Whenever it is a damp, drizzly November in my soul, then I account it high time to get
  to sea as soon as I can.
This is my substitute for pistol and ball; with a philosophical flourish Cato throws
  himself upon his sword; I quietly take to the ship.
If they but knew it, almost all men in their degree, some time or other, cherish very
  nearly the same feelings towards the ocean with me.
No, when I go to sea, I go as a simple sailor, right before the mast, plumb down into
  the forecastle.
Again, I always go to sea as a sailor, because they make a point of paying me for my
  trouble.
Finally, I always go to sea as a sailor, because of the wholesome exercise and pure
  air of the forecastle deck.
Chief among these motives was the overwhelming idea of the great whale himself.
Then the wild and distant seas where he rolled his island bulk; the undeliverable,
  nameless perils of the whale.
I love to sail forbidden seas, and land on barbarous coasts.
By reason of these things, then, the whaling voyage was welcome.
In the wild conceits that swayed me to my purpose, there floated into my inmost soul
  endless processions of the whale.
Nantucket! Take out your map and look at it; see how it stands there, away off shore.
Captain Ahab stood upon his quarter-deck, looking straight out beyond the ship's ever-
  pitching prow.
All ye mast-headers have before now heard me give orders about a white whale, cried
  Ahab.
It was that accursed white whale that razeed me, said Ahab.
The ship tore on; and the great sea rolled over the whale as it rolled five thousand
  years ago.
"""
BOOKS = {"Constitution": CONSTITUTION, "Alice": ALICE, "Moby-Dick": MOBY_DICK}


def load_sentences():
    """Return all sentences, and the index of the book of each."""
    # indented lines continue a sentence
    texts = [text.replace("\n  ", " ").split("\n")[1:-1] for text in BOOKS.values()]
    numbers = np.repeat(np.arange(len(texts)), [len(lines) for lines in texts])
    return [line for lines in texts for line in lines], numbers


if __name__ == "__main__":
    lines, book = load_sentences()
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform(lines)
    model = CDSK(len(BOOKS), metric="cosine", random_state=0).fit(X)

    print(f"{X.shape[0]} sentences, {X.shape[1]} words, {X.nnz} nonzero entries")
    print(f"adjusted Rand index {adjusted_rand_score(book, model.labels_):.2f}")
    print()
    words = vectorizer.get_feature_names_out()
    print(f"{'cluster':9}{'sentences':11}{'probability':13}words")
    for cluster in range(model.n_clusters_):
        members = model.labels_ == cluster
        # words that are more frequent than in the other clusters
        difference = X[members].mean(axis=0) - X[~members].mean(axis=0)
        top = " ".join(words[np.argsort(-np.asarray(difference).ravel())[:7]])
        probability = model.probabilities_[members].mean()
        print(f"{cluster:<9}{members.sum():<11}{probability:<13.2f}{top}")
    print()
    new = ["The Rabbit said to Alice.", "The Senate and the President of the States."]
    probabilities = model.predict_proba(vectorizer.transform(new))
    for line, p in zip(new, probabilities, strict=True):
        print(f"{line:45}", " ".join(f"{value:.2f}" for value in p))
